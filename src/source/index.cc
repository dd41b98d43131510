// parse() goes from the outside in, so that each step may rely on the ones before it:
//   header    magic, version, sizes, both hashes
//   columns   every one inside the file, widths known, no id twice, unknown ones only if optional
//   shape     required columns have as many values as the header counts
//   names     well-formed, plain: no "/" in a name, no "..", nothing absolute
//   samples   directories and shards exist, ranges lie inside their shard, sums do not overflow
// The hashes catch damage; the rest catches files that were made to harm.
#include "source/index.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "base/open_below.h"
#include "source/index_builder.h"

namespace foreload {

namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 60;

Error damaged(const char* what) {
  return {Code::kInvalid, std::string("not a usable index: ") + what};
}

bool is_width(std::uint32_t width) {
  return width <= 2 || width == 4 || width == 8;
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

bool is_plain_directory(std::string_view path) {
  return path.empty() || is_plain_relative(path);
}

}  // namespace

std::size_t IndexView::slot(ColumnId id) {
  const auto number = static_cast<std::uint32_t>(id);
  constexpr auto kFirstOptional = static_cast<std::uint32_t>(ColumnId::kFirstOptional);
  constexpr auto kLastRequired = static_cast<std::uint32_t>(ColumnId::kOffset);
  constexpr auto kLastOptional = static_cast<std::uint32_t>(ColumnId::kNoteText);
  static_assert(kLastRequired + kLastOptional - kFirstOptional < kKnownColumns);
  if (number >= 1 && number <= kLastRequired) return number;
  if (number > kFirstOptional && number <= kLastOptional) return kLastRequired + number - kFirstOptional;
  return 0;  // not known; no known column has this slot
}

Result<IndexView> IndexView::parse(std::span<const std::byte> file) {
  IndexView view;
  view.file_ = file;
  FORELOAD_TRY(view.parse_header());
  FORELOAD_TRY(view.parse_columns());
  FORELOAD_TRY(view.check_shape());
  FORELOAD_TRY(view.check_names());
  FORELOAD_TRY(view.check_samples());
  return view;
}

Status IndexView::parse_header() {
  if (file_.size() < sizeof(IndexHeader) + sizeof(std::uint64_t)) return damaged("it is too short");
  std::memcpy(&header_, file_.data(), sizeof header_);
  if (header_.magic != kIndexMagic) return damaged("it does not begin like one");
  if (header_.version != kIndexVersion) return damaged("its version is another one");
  if (kind() != IndexKind::kFolder && kind() != IndexKind::kTar) return damaged("its kind is unknown");
  if (header_.columns > kMaxIndexColumns) return damaged("it has too many columns");
  const std::uint64_t hash_at = sizeof(IndexHeader) + header_.columns * sizeof(IndexColumnEntry);
  const std::uint64_t content_at = hash_at + sizeof(std::uint64_t);
  if (file_.size() < content_at || header_.file_bytes != file_.size()) return damaged("its size is wrong");
  std::uint64_t header_hash = 0;
  std::memcpy(&header_hash, file_.data() + hash_at, sizeof header_hash);
  if (hash_bytes(file_.first(hash_at)) != header_hash) return damaged("the checksum of its header is wrong");
  if (hash_bytes(file_.subspan(content_at)) != header_.content_hash) return damaged("its checksum is wrong");
  entries_.resize(header_.columns);
  if (entries_.empty()) return damaged("it has no columns");
  std::memcpy(entries_.data(), file_.data() + sizeof header_, entries_.size() * sizeof(IndexColumnEntry));
  return {};
}

Status IndexView::parse_columns() {
  for (const IndexColumnEntry& entry : entries_) {
    if (!is_width(entry.width) || entry.offset > file_.size()) return damaged("a column lies outside of it");
    const std::uint64_t room = file_.size() - entry.offset;
    if (entry.width > 0 && entry.count > room / entry.width) return damaged("a column lies outside of it");
    const std::size_t place = slot(static_cast<ColumnId>(entry.id));
    if (place == 0) {
      if (entry.id < static_cast<std::uint32_t>(ColumnId::kFirstOptional)) return damaged("a column is unknown");
      continue;
    }
    Column& column = known_[place];
    if (column.present) return damaged("a column is there twice");
    const std::span<const std::byte> bytes = file_.subspan(entry.offset, entry.count * entry.width);
    column = {true, Packed(bytes.data(), entry.count, entry.width, entry.base), bytes};
  }
  return {};
}

Status IndexView::require(ColumnId id, std::uint64_t count) const {
  if (!has(id)) return damaged("a column is missing");
  if (column(id).size() != count) return damaged("a column has the wrong length");
  return {};
}

NameTable IndexView::names(ColumnId blocks, ColumnId text_id, std::uint64_t count) const {
  return NameTable(count, column(blocks), text(text_id));
}

Status IndexView::check_shape() {
  for (const ColumnId id : {ColumnId::kLength, ColumnId::kLabel, ColumnId::kDirectory}) {
    FORELOAD_TRY(require(id, size()));
  }
  for (const ColumnId id : {ColumnId::kDirectoryMtime, ColumnId::kDirectoryListing}) {
    FORELOAD_TRY(require(id, header_.directories));
  }
  for (const ColumnId id : {ColumnId::kShardSize, ColumnId::kShardMtime}) FORELOAD_TRY(require(id, header_.shards));
  FORELOAD_TRY(require(ColumnId::kMtime, kind() == IndexKind::kFolder ? size() : 0));
  for (const ColumnId id : {ColumnId::kShard, ColumnId::kOffset}) {
    FORELOAD_TRY(require(id, kind() == IndexKind::kTar ? size() : 0));
  }
  for (const ColumnId id : {ColumnId::kWidth, ColumnId::kHeight}) {
    if (has(ColumnId::kWidth) || has(ColumnId::kHeight)) FORELOAD_TRY(require(id, size()));
  }
  names_ = names(ColumnId::kNameBlock, ColumnId::kNameText, size());
  directories_ = names(ColumnId::kDirectoryBlock, ColumnId::kDirectoryText, header_.directories);
  classes_ = names(ColumnId::kClassBlock, ColumnId::kClassText, header_.classes);
  shards_ = names(ColumnId::kShardBlock, ColumnId::kShardText, header_.shards);
  return {};
}

Status IndexView::check_names() const {
  // verify() bounds each count by the bytes of its text, so every loop from here on is bounded by the file.
  if (!names_.verify(is_plain_name)) return damaged("its names are damaged");
  if (!directories_.verify(is_plain_directory)) return damaged("its directories are damaged");
  if (!classes_.verify(is_plain_name)) return damaged("its classes are damaged");
  if (!shards_.verify(is_plain_relative)) return damaged("its shards are damaged");
  return {};
}

Status IndexView::check_samples() {
  for (std::uint64_t i = 0; i < shards(); ++i) {
    if (shard_stamp(i).size > kMaxFileBytes) return damaged("a shard is absurdly long");
  }
  const Packed& sample_directories = column(ColumnId::kDirectory);
  for (SampleId id = 0; id < size(); ++id) {
    const Bytes sample_length = length(id);
    if (sample_length > kMaxFileBytes) return damaged("a length is absurd");
    if (__builtin_add_overflow(total_bytes_, sample_length, &total_bytes_)) return damaged("a length is absurd");
    max_length_ = std::max(max_length_, sample_length);
    // As unsigned, a negative number is too large as well.
    if (static_cast<std::uint64_t>(sample_directories[id]) >= header_.directories) {
      return damaged("a directory is missing");
    }
    if (kind() != IndexKind::kTar) continue;
    if (shard(id) >= header_.shards) return damaged("a shard is missing");
    const auto shard_size = static_cast<Bytes>(column(ColumnId::kShardSize)[shard(id)]);
    if (offset(id) > shard_size || sample_length > shard_size - offset(id)) {
      return damaged("a sample lies outside of its shard");
    }
  }
  return {};
}

std::string IndexView::key(SampleId id) const {
  std::string key = directories_.at(static_cast<std::uint64_t>(column(ColumnId::kDirectory)[id]));
  if (!key.empty()) key += '/';
  return key += names_.at(id);
}

std::optional<Dimensions> IndexView::dimensions(SampleId id) const {
  if (!has(ColumnId::kWidth)) return std::nullopt;
  const Dimensions found{static_cast<std::uint32_t>(column(ColumnId::kWidth)[id]),
                         static_cast<std::uint32_t>(column(ColumnId::kHeight)[id])};
  if (found.width == 0 || found.height == 0) return std::nullopt;
  return found;
}

std::uint64_t IndexView::directory_listing(std::uint64_t i) const {
  return static_cast<std::uint64_t>(column(ColumnId::kDirectoryListing)[i]);
}

bool IndexView::has_samples_in(std::uint64_t directory) const {
  const Packed& sample_directories = column(ColumnId::kDirectory);
  for (SampleId id = 0; id < size(); ++id) {
    if (static_cast<std::uint64_t>(sample_directories[id]) == directory) return true;
  }
  return false;
}

FileStamp IndexView::shard_stamp(std::uint64_t i) const {
  return {static_cast<Bytes>(column(ColumnId::kShardSize)[i]), column(ColumnId::kShardMtime)[i]};
}

std::vector<std::string> IndexView::classes() const {
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < classes_.size(); ++i) names.push_back(classes_.at(i));
  return names;
}

std::vector<std::string> IndexView::notes() const {
  std::vector<std::string> lines;
  const std::span<const std::byte> bytes = text(ColumnId::kNoteText);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kMaxNoteBytes));
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0) lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

std::vector<std::byte> IndexView::with_dimensions(std::span<const Dimensions> dimensions) const {
  FORELOAD_CHECK(dimensions.size() == size(), "one pair for each sample");
  std::vector<std::int64_t> widths;
  std::vector<std::int64_t> heights;
  for (const Dimensions& each : dimensions) {
    widths.push_back(each.width);
    heights.push_back(each.height);
  }
  std::vector<IndexColumn> columns;
  for (const IndexColumnEntry& entry : entries_) {
    const auto id = static_cast<ColumnId>(entry.id);
    if (id == ColumnId::kWidth || id == ColumnId::kHeight || slot(id) == 0) continue;
    const auto bytes = file_.subspan(entry.offset, entry.count * entry.width);
    columns.push_back({id, entry.width, entry.count, entry.base, bytes});
  }
  const PackedColumn width = pack(widths);
  const PackedColumn height = pack(heights);
  columns.push_back({ColumnId::kWidth, width.width, width.count, width.base, width.bytes});
  columns.push_back({ColumnId::kHeight, height.width, height.count, height.base, height.bytes});
  return assemble_index(header_, columns);
}

Result<Index> Index::open(const std::string& path) {
  FORELOAD_ASSIGN(MappedFile file, MappedFile::open(path));
  return parse(std::move(file));
}

Result<Index> Index::from_bytes(std::vector<std::byte> bytes) {
  return parse(std::move(bytes));
}

Result<Index> Index::parse(Storage storage) {
  // Moving either kind of storage leaves its bytes where they are.
  const auto* heap = std::get_if<std::vector<std::byte>>(&storage);
  const std::span<const std::byte> bytes = heap != nullptr ? *heap : std::get<MappedFile>(storage).bytes();
  FORELOAD_ASSIGN(IndexView view, IndexView::parse(bytes));
  return Index(std::move(storage), std::move(view));
}

}  // namespace foreload
