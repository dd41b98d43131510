// The table of a disk cache over arbitrary bytes. The hashes are made to fit first, so that the checks behind them have
// to find what is wrong; whatever is accepted must lie inside the data file, apart from all others, and the rest be
// free.
#include "tier/disk_table.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

namespace {

constexpr foreload::Bytes kCapacity = 4096;
constexpr std::uint64_t kSamples = 64;

foreload::Bytes length_of(foreload::SampleId id) {
  return id % 40;
}

foreload::DiskSamples samples() {
  return {.count = kSamples, .fingerprint = 7, .length = length_of, .stamp = [](foreload::SampleId id) {
            return foreload::FileStamp{length_of(id), 1};
          }};
}

// Every byte of the data file belongs to one sample at most.
void check(const foreload::DiskTable& table) {
  std::vector<bool> taken(kCapacity);
  foreload::Bytes used = 0;
  for (foreload::SampleId id = 0; id < kSamples; ++id) {
    if (!table.has(id)) continue;
    for (foreload::Bytes at = table.offset(id); at < table.offset(id) + length_of(id); ++at) {
      if (at >= kCapacity || taken[at]) std::abort();
      taken[at] = true;
    }
    used += length_of(id);
  }
  if (used != table.used_bytes() || used + table.free_bytes() != kCapacity) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (foreload::judge_disk_header(bytes, 7, kSamples) == foreload::HeaderKind::kOurs) {
    const foreload::DiskHeader good = foreload::make_disk_header(7, kSamples);
    if (std::memcmp(data, &good, sizeof good) != 0) std::abort();
  }
  foreload::DiskTable table(samples(), kCapacity);
  for (foreload::SampleId id = 0; id < std::min<std::uint64_t>(kSamples, size / sizeof(foreload::DiskEntry)); ++id) {
    foreload::DiskEntry entry;
    std::memcpy(&entry, data + id * sizeof entry, sizeof entry);
    (void)table.load(id, entry);
    entry.offset %= 2 * kCapacity;
    if (!table.has(id)) (void)table.load(id, table.entry_for(id, entry.offset, entry.content));
  }
  (void)table.settle();
  check(table);
  for (foreload::SampleId id = 0; id < kSamples; ++id) {
    if (table.has(id) || length_of(id) == 0) continue;
    if (const auto offset = table.allocate(length_of(id))) table.add(id, *offset, 0);
  }
  check(table);
  return 0;
}
