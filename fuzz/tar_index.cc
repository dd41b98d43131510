// The tar indexer over arbitrary bytes. With checksums as they are, hardly any damage would get past the first header:
// so the first byte decides whether the checksums of all blocks that look like headers are made to fit before.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "source/tar_samples.h"
#include "source/tar_shard.h"

namespace {

constexpr std::size_t kBlock = 512;

void fit_checksums(std::string& archive) {
  for (std::size_t at = 0; at + kBlock <= archive.size(); at += kBlock) {
    char* block = archive.data() + at;
    if (std::memcmp(block + 257, "ustar", 5) != 0) continue;
    std::memset(block + 148, ' ', 8);
    unsigned sum = 0;
    for (std::size_t i = 0; i < kBlock; ++i) sum += static_cast<unsigned char>(block[i]);
    std::snprintf(block + 148, 8, "%06o", sum);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string archive(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 != 0) fit_checksums(archive);
  const foreload::ReadAt read_at = [&archive](foreload::Bytes offset,
                                              std::span<std::byte> into) -> foreload::Result<std::size_t> {
    if (offset >= archive.size()) return std::size_t{0};
    const std::size_t count = std::min<std::size_t>(into.size(), archive.size() - offset);
    std::memcpy(into.data(), archive.data() + offset, count);
    return count;
  };
  foreload::Warnings warnings;
  auto content = foreload::scan_shard(read_at, archive.size(), {"shard", "label"}, warnings);
  if (!content.ok()) return 0;
  std::vector<foreload::ShardContent> shards;
  shards.push_back(std::move(*content));
  const foreload::TarSamples chosen = foreload::choose_samples(shards, warnings);
  for (const foreload::TarSample& sample : chosen.samples) {
    const foreload::ShardMember& member = shards[0].payloads[sample.payload];
    // The claims that everything behind the indexer relies on.
    if (member.offset > archive.size() || member.length > archive.size() - member.offset) std::abort();
    const std::string_view key = chosen.key(shards, sample);
    if (key.empty() || key.front() == '/' || key.find('\0') != std::string_view::npos) std::abort();
    if (foreload::plain_member_name(key) != key) std::abort();
  }
  return 0;
}
