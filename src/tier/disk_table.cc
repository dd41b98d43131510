#include "tier/disk_table.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/hash.h"

namespace foreload {
namespace {

constexpr char kMagic[8] = {'f', 'l', '-', 'c', 'a', 'c', 'h', 'e'};
constexpr std::uint32_t kByteOrder = 0x01020304;

std::uint64_t header_check(const DiskHeader& header) {
  return hash_bytes(std::as_bytes(std::span(&header, 1)).first(offsetof(DiskHeader, check)));
}

std::uint64_t stamp_hash(const FileStamp& stamp) {
  const std::uint64_t facts[] = {stamp.size, static_cast<std::uint64_t>(stamp.mtime_ns)};
  return hash_bytes(std::as_bytes(std::span(facts)));
}

}  // namespace

DiskHeader make_disk_header(std::uint64_t fingerprint, std::uint64_t samples) {
  DiskHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kDiskVersion;
  header.byte_order = kByteOrder;
  header.fingerprint = fingerprint;
  header.samples = samples;
  header.check = header_check(header);
  return header;
}

// A header of another version may have its hash elsewhere, so the version is judged before the hash.
HeaderKind judge_disk_header(std::span<const std::byte> bytes, std::uint64_t fingerprint, std::uint64_t samples) {
  DiskHeader header{};
  if (bytes.size() < sizeof header) return HeaderKind::kDamaged;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return HeaderKind::kDamaged;
  if (header.version != kDiskVersion || header.byte_order != kByteOrder) return HeaderKind::kForeign;
  if (header.check != header_check(header)) return HeaderKind::kDamaged;
  return header.fingerprint == fingerprint && header.samples == samples ? HeaderKind::kOurs : HeaderKind::kForeign;
}

Bytes DiskTable::bytes_for(std::uint64_t samples) {
  const Bytes while_settling = samples * sizeof(SampleId);
  return samples * sizeof(Slot) + while_settling + std::min<Bytes>(samples + 1, Gaps::kMost) * Gaps::kBytesEach;
}

DiskTable::DiskTable(DiskSamples samples, Bytes capacity)
    : samples_(std::move(samples)), capacity_(capacity), slots_(samples_.count) {}

DiskEntry DiskTable::entry_for(SampleId id, Bytes offset, std::uint64_t content) const {
  DiskEntry entry{.offset = offset, .stamp = stamp_hash(samples_.stamp(id)), .content = content};
  entry.check = entry_check(id, entry);
  return entry;
}

std::uint64_t DiskTable::entry_check(SampleId id, const DiskEntry& entry) const {
  const std::uint64_t facts[] = {entry.offset, entry.stamp,         entry.content,
                                 id,           samples_.length(id), samples_.fingerprint};
  return hash_bytes(std::as_bytes(std::span(facts)));
}

LoadedEntry DiskTable::load(SampleId id, const DiskEntry& entry) {
  const Bytes length = samples_.length(id);
  if (length == 0 || entry.check != entry_check(id, entry)) return LoadedEntry::kDamaged;
  if (entry.stamp != stamp_hash(samples_.stamp(id))) return LoadedEntry::kOutdated;
  if (entry.offset > capacity_ || length > capacity_ - entry.offset) return LoadedEntry::kBeyond;
  add(id, entry.offset, entry.content);
  return LoadedEntry::kTaken;
}

std::uint64_t DiskTable::settle() {
  std::vector<SampleId> ids;
  for (SampleId id = 0; id < slots_.size(); ++id) {
    if (has(id)) ids.push_back(id);
  }
  std::ranges::sort(ids, {}, [this](SampleId id) { return slots_[id].offset; });
  std::uint64_t dropped = 0;
  Bytes end = 0;  // of what was kept
  for (const SampleId id : ids) {
    if (slots_[id].offset < end) {
      remove(id);
      ++dropped;
      continue;
    }
    gaps_.release(end, slots_[id].offset - end);
    end = slots_[id].offset + samples_.length(id);
  }
  gaps_.release(end, capacity_ - end);
  return dropped;
}

void DiskTable::add(SampleId id, Bytes offset, std::uint64_t content) {
  slots_[id] = {offset, content};
  used_ += samples_.length(id);
}

void DiskTable::remove(SampleId id) {
  slots_[id] = {};
  used_ -= samples_.length(id);
}

}  // namespace foreload
