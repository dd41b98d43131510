// The table of a disk cache: its format, and the list in memory of what the data file holds. Files are untrusted: an
// entry counts only if its hash fits the sample, it lies inside the data file and overlaps no other. One whose hash
// fits, but which was made of a file with another size or time, is right and of no use: outdated, not damaged.
//
//   table:  [ header ][ zeros to 4,096 ][ entry of sample 0 ][ entry of sample 1 ] …      native byte order
//   data:   samples in any order, found by offset
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "foreload/source.h"
#include "foreload/types.h"
#include "tier/gaps.h"

namespace foreload {

inline constexpr Bytes kDiskHeaderBytes = 4096;
inline constexpr std::uint32_t kDiskVersion = 1;

struct DiskHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t byte_order;
  std::uint64_t fingerprint;
  std::uint64_t samples;
  std::uint64_t check;  // xxh3 of all before
};
static_assert(sizeof(DiskHeader) == 40);

// All zeros: the sample is not there.
struct DiskEntry {
  std::uint64_t offset = 0;
  std::uint64_t stamp = 0;    // xxh3 of size and time of the file that it was read from
  std::uint64_t content = 0;  // xxh3 of the sample's bytes
  std::uint64_t check = 0;    // xxh3 of all before, the sample's id and length, and the dataset's fingerprint

  bool operator==(const DiskEntry&) const = default;
};
static_assert(sizeof(DiskEntry) == 32);

enum class LoadedEntry {
  kTaken,
  kDamaged,
  kOutdated,  // right, but of a file that is another one now
  kBeyond,    // right, but behind the end of a table that has become smaller
};

enum class HeaderKind {
  kOurs,
  kDamaged,  // or empty: begin anew
  kForeign,  // of another version, machine or dataset: leave it alone
};

DiskHeader make_disk_header(std::uint64_t fingerprint, std::uint64_t samples);
HeaderKind judge_disk_header(std::span<const std::byte> bytes, std::uint64_t fingerprint, std::uint64_t samples);

// What the dataset knows about its samples; outlives the table.
struct DiskSamples {
  std::uint64_t count = 0;
  std::uint64_t fingerprint = 0;
  std::function<Bytes(SampleId)> length{};
  std::function<FileStamp(SampleId)> stamp{};
};

// Not thread-safe.
class DiskTable {
 public:
  static Bytes bytes_for(std::uint64_t samples);

  DiskTable(DiskSamples samples, Bytes capacity);

  DiskEntry entry_for(SampleId id, Bytes offset, std::uint64_t content) const;
  // Takes an entry as the file has it, if it counts.
  LoadedEntry load(SampleId id, const DiskEntry& entry);
  // After the last load(): drops what overlaps and finds the gaps. Returns how many were dropped.
  std::uint64_t settle();

  bool has(SampleId id) const { return slots_[id].offset != kAbsent; }
  Bytes offset(SampleId id) const { return slots_[id].offset; }
  std::uint64_t content(SampleId id) const { return slots_[id].content; }
  std::uint64_t size() const { return slots_.size(); }
  Bytes used_bytes() const { return used_; }
  Bytes free_bytes() const { return gaps_.free_bytes(); }

  std::optional<Bytes> allocate(Bytes length) { return gaps_.allocate(length); }
  void release(Bytes offset, Bytes length) { gaps_.release(offset, length); }
  // The entry appears or disappears; room is taken and given back by the two above.
  void add(SampleId id, Bytes offset, std::uint64_t content);
  void remove(SampleId id);

 private:
  static constexpr Bytes kAbsent = ~Bytes{0};
  struct Slot {
    Bytes offset = kAbsent;
    std::uint64_t content = 0;
  };

  std::uint64_t entry_check(SampleId id, const DiskEntry& entry) const;

  DiskSamples samples_;
  Bytes capacity_;
  std::vector<Slot> slots_;
  Gaps gaps_;
  Bytes used_ = 0;
};

}  // namespace foreload
