//   header (64 bytes)   starts (u64 × (samples + 1))   offsets (u32 × offsets)
// The hashes catch damage; the rest catches files that were made to harm. Whoever uses the offsets of a sample still
// has to look whether the markers stand there: the side file may be older than the shard.
#include "source/record_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace foreload {

namespace {

constexpr std::uint64_t kMaxSamples = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxOffsets = std::uint64_t{1} << 48;

Error damaged(const char* what) {
  return {Code::kInvalid, std::string("not a usable file of row offsets: ") + what};
}

std::uint64_t file_size(std::uint64_t samples, std::uint64_t offsets) {
  return sizeof(RowsHeader) + 8 * (samples + 1) + 4 * offsets;
}

std::uint64_t header_hash_of(const RowsHeader& header) {
  return hash_bytes(std::as_bytes(std::span(&header, 1)).first(offsetof(RowsHeader, header_hash)));
}

}  // namespace

Status RecordRowsView::check_header(std::span<const std::byte> file) {
  if (file.size() < sizeof header_) return damaged("it is too short");
  std::memcpy(&header_, file.data(), sizeof header_);
  if (header_.magic != kRowsMagic) return damaged("it does not begin with the magic");
  if (header_.version != kRowsVersion || header_.reserved != 0) return damaged("its version is not known");
  if (header_.header_hash != header_hash_of(header_)) return damaged("the hash of its header is wrong");
  if (header_.samples > kMaxSamples || header_.offsets > kMaxOffsets) return damaged("it counts too many samples");
  if (header_.file_bytes != file.size() || file_size(header_.samples, header_.offsets) != file.size()) {
    return damaged("its length is wrong");
  }
  if (header_.content_hash != hash_bytes(file.subspan(sizeof header_))) return damaged("its hash is wrong");
  return {};
}

Status RecordRowsView::check_samples() const {
  if (starts_.front() != 0 || starts_.back() != header_.offsets) return damaged("its samples do not cover the offsets");
  for (std::uint64_t id = 0; id < header_.samples; ++id) {
    if (starts_[id + 1] < starts_[id] || starts_[id + 1] > header_.offsets) return damaged("its samples overlap");
    const auto mine = rows(id);
    if (mine.size() > kMaxRowOffsets || mine.size() == 1) return damaged("a sample has too many rows, or none");
    for (std::size_t i = 1; i < mine.size(); ++i) {
      if (mine[i] <= mine[i - 1]) return damaged("the rows of a sample are not in order");
    }
  }
  return {};
}

Result<RecordRowsView> RecordRowsView::parse(std::span<const std::byte> file) {
  FORELOAD_CHECK(reinterpret_cast<std::uintptr_t>(file.data()) % alignof(std::uint64_t) == 0, "it is aligned");
  RecordRowsView view;
  FORELOAD_TRY(view.check_header(file));
  const std::byte* const starts = file.data() + sizeof(RowsHeader);
  const std::size_t count = view.header_.samples + 1;
  view.starts_ = {reinterpret_cast<const std::uint64_t*>(starts), count};
  view.offsets_ = {reinterpret_cast<const std::uint32_t*>(starts + 8 * count), view.header_.offsets};
  FORELOAD_TRY(view.check_samples());
  return view;
}

std::span<const std::uint32_t> RecordRowsView::rows(SampleId id) const {
  // Whoever rewrites the file in place changes what parse() saw: each number is read once, and judged again.
  const std::uint64_t first = __atomic_load_n(&starts_[id], __ATOMIC_RELAXED);
  const std::uint64_t end = __atomic_load_n(&starts_[id + 1], __ATOMIC_RELAXED);
  if (first > end || end > offsets_.size()) return {};
  return offsets_.subspan(first, end - first);
}

Result<RecordRows> RecordRows::open(const std::string& path, std::uint64_t fingerprint) {
  FORELOAD_ASSIGN(MappedFile file, MappedFile::open(path));
  return parse(std::move(file), path, fingerprint);
}

Result<RecordRows> RecordRows::from_bytes(std::vector<std::byte> bytes, const std::string& name,
                                          std::uint64_t fingerprint) {
  return parse(std::move(bytes), name, fingerprint);
}

Result<RecordRows> RecordRows::parse(Storage storage, const std::string& name, std::uint64_t fingerprint) {
  // Moving either kind of storage leaves its bytes where they are.
  const auto* heap = std::get_if<std::vector<std::byte>>(&storage);
  auto view = RecordRowsView::parse(heap != nullptr ? *heap : std::get<MappedFile>(storage).bytes());
  if (!view) return Error{view.error().code, name + ": " + view.error().message};
  if (view->fingerprint() != fingerprint) {
    return Error{Code::kMismatch, name + " belongs to the dataset " + hex16(view->fingerprint()) + ", not to " +
                                      hex16(fingerprint) + ": convert again"};
  }
  return RecordRows(std::move(storage), *view);
}

void RecordRowsBuilder::add(std::span<const std::uint32_t> rows) {
  FORELOAD_CHECK(rows.size() != 1 && rows.size() <= kMaxRowOffsets, "a picture has rows, and not too many");
  offsets_.insert(offsets_.end(), rows.begin(), rows.end());
  starts_.push_back(offsets_.size());
}

std::vector<std::byte> RecordRowsBuilder::finish(std::uint64_t fingerprint) && {
  RowsHeader header;
  header.samples = starts_.size() - 1;
  header.offsets = offsets_.size();
  header.fingerprint = fingerprint;
  header.file_bytes = file_size(header.samples, header.offsets);
  std::vector<std::byte> file(header.file_bytes);
  const auto starts = std::as_bytes(std::span(starts_));
  const auto offsets = std::as_bytes(std::span(offsets_));
  std::copy(starts.begin(), starts.end(), file.begin() + sizeof header);
  std::copy(offsets.begin(), offsets.end(), file.begin() + static_cast<long>(sizeof header + starts.size()));
  header.content_hash = hash_bytes(std::span(file).subspan(sizeof header));
  header.header_hash = header_hash_of(header);
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

}  // namespace foreload
