// The parser of index files over arbitrary bytes. The hashes are made to fit first, so that the checks behind them
// have to find what is wrong; whatever is accepted must be readable to the last value.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/open_below.h"
#include "source/index.h"

namespace {

void fit_hashes(std::vector<std::byte>& file) {
  foreload::IndexHeader header;
  if (file.size() < sizeof header + 8) return;
  std::memcpy(&header, file.data(), sizeof header);
  header.magic = foreload::kIndexMagic;
  header.version = foreload::kIndexVersion;
  header.columns = std::min(header.columns, foreload::kMaxIndexColumns);
  header.file_bytes = file.size();
  const std::size_t hash_at = sizeof header + header.columns * sizeof(foreload::IndexColumnEntry);
  if (hash_at + 8 > file.size()) return;
  header.content_hash = foreload::hash_bytes(std::span(file).subspan(hash_at + 8));
  std::memcpy(file.data(), &header, sizeof header);
  const std::uint64_t hash = foreload::hash_bytes(std::span(file).first(hash_at));
  std::memcpy(file.data() + hash_at, &hash, sizeof hash);
}

void read_all(const foreload::IndexView& view) {
  std::uint64_t sum = view.classes().size() + view.notes().size();
  for (foreload::SampleId id = 0; id < view.size(); ++id) {
    if (!foreload::is_plain_relative(view.key(id))) std::abort();
    sum += view.length(id) + static_cast<std::uint64_t>(view.label(id));
    sum += view.dimensions(id) ? 1 : 0;
    if (view.kind() == foreload::IndexKind::kFolder) {
      sum += static_cast<std::uint64_t>(view.mtime_ns(id));
      continue;
    }
    const foreload::FileStamp stamp = view.shard_stamp(view.shard(id));
    if (view.offset(id) > stamp.size || view.length(id) > stamp.size - view.offset(id)) std::abort();
    if (!foreload::is_plain_relative(view.shard_path(view.shard(id)))) std::abort();
  }
  for (std::uint64_t i = 0; i < view.directories(); ++i) {
    sum += view.directory(i).size() + view.directory_listing(i);
    sum += static_cast<std::uint64_t>(view.directory_mtime_ns(i));
  }
  // The sum is used, so that no read is optimised away.
  if (sum == 0x5eed5eed5eed5eed) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> file(size);
  if (size > 0) std::memcpy(file.data(), data, size);
  fit_hashes(file);
  const auto view = foreload::IndexView::parse(file);
  if (!view.ok()) return 0;
  read_all(*view);
  const std::vector<foreload::Dimensions> dimensions(view->size(), {3, 5});
  const std::vector<std::byte> rewritten = view->with_dimensions(dimensions);
  if (!foreload::IndexView::parse(rewritten).ok()) std::abort();
  return 0;
}
