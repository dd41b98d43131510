// A range is [Control][Block payload][Block payload]…[end Block]. Blocks lie back to back:
//
//   previous | size+free | payload …            while free, the payload begins with the
//   8 bytes    8 bytes     size-16 bytes        offsets of its list's next and previous block
//
// Free blocks hang in lists by size: first level = power of two, second level = 16 equal steps in it.
// Two bitmaps find the first list whose blocks all fit. If there is none, the request's own list may
// still hold a block that is long enough, so that one is searched too: a filling range wastes nothing.
#include "tier/extents.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/check.h"

namespace foreload {
namespace {

constexpr std::uint64_t kNone = ~0ull;
constexpr Bytes kAlign = 16;
constexpr Bytes kHeader = 16;
constexpr Bytes kSmallest = 32;  // header and the two list offsets
constexpr unsigned kSteps = 16;
constexpr unsigned kStepBits = 4;
constexpr unsigned kLevels = 64;

struct ListIndex {
  unsigned level;
  unsigned step;
};

ListIndex list_of(Bytes size) {
  const unsigned level = std::bit_width(size) - 1;
  return {level, static_cast<unsigned>((size >> (level - kStepBits)) & (kSteps - 1))};
}

// The first list in which every block is at least `size` long.
ListIndex list_above(Bytes size) {
  const unsigned level = std::bit_width(size) - 1;
  return list_of(size + (Bytes{1} << (level - kStepBits)) - 1);
}

}  // namespace

struct Extents::Block {
  std::uint64_t previous;       // offset of the block before this one, kNone for the first
  std::uint64_t size_and_free;  // size in bytes with header; bit 0: free
  std::uint64_t next_free;      // only while free
  std::uint64_t previous_free;

  Bytes size() const { return size_and_free & ~Bytes{1}; }
  bool is_free() const { return (size_and_free & 1) != 0; }
};

struct Extents::Control {
  std::uint64_t levels;  // bit l: some list of level l holds a block
  std::uint16_t steps[kLevels];
  std::uint64_t heads[kLevels][kSteps];
  Bytes used;
};

Bytes Extents::footprint(Bytes length) {
  return std::max(kSmallest, (length + kHeader + kAlign - 1) / kAlign * kAlign);
}

Bytes Extents::overhead() {
  return (sizeof(Control) + kAlign - 1) / kAlign * kAlign + sizeof(Block);
}

Extents::Control& Extents::control() const {
  return *reinterpret_cast<Control*>(range_.data());
}

Extents::Block& Extents::block(std::uint64_t offset) const {
  return *reinterpret_cast<Block*>(range_.data() + offset);
}

Extents Extents::format(std::span<std::byte> range) {
  FORELOAD_CHECK(range.size() >= overhead() + footprint(1), "a range holds at least one stretch");
  FORELOAD_CHECK(reinterpret_cast<std::uintptr_t>(range.data()) % kAlign == 0, "ranges are aligned");
  Extents extents(range);
  auto& control = *new (range.data()) Control{};
  std::fill(&control.heads[0][0], &control.heads[0][0] + kLevels * kSteps, kNone);
  const std::uint64_t first = (sizeof(Control) + kAlign - 1) / kAlign * kAlign;
  const std::uint64_t end = (range.size() - sizeof(Block)) / kAlign * kAlign;
  extents.block(first) = {.previous = kNone, .size_and_free = end - first, .next_free = kNone, .previous_free = kNone};
  extents.block(end) = {.previous = first, .size_and_free = 0, .next_free = kNone, .previous_free = kNone};
  extents.insert(first);
  return extents;
}

void Extents::insert(std::uint64_t offset) {
  Block& freed = block(offset);
  const auto [level, step] = list_of(freed.size());
  std::uint64_t& head = control().heads[level][step];
  freed.size_and_free |= 1;
  freed.next_free = head;
  freed.previous_free = kNone;
  if (head != kNone) block(head).previous_free = offset;
  head = offset;
  control().steps[level] |= static_cast<std::uint16_t>(1u << step);
  control().levels |= 1ull << level;
}

void Extents::remove(std::uint64_t offset) {
  Block& taken = block(offset);
  const auto [level, step] = list_of(taken.size());
  if (taken.next_free != kNone) block(taken.next_free).previous_free = taken.previous_free;
  if (taken.previous_free != kNone) {
    block(taken.previous_free).next_free = taken.next_free;
  } else {
    control().heads[level][step] = taken.next_free;
    if (taken.next_free == kNone) control().steps[level] &= static_cast<std::uint16_t>(~(1u << step));
    if (control().steps[level] == 0) control().levels &= ~(1ull << level);
  }
  taken.size_and_free &= ~1ull;
}

std::optional<std::uint64_t> Extents::find(Bytes size) const {
  const Control& lists = control();
  const auto [level, step] = list_above(size);
  if (const unsigned steps = lists.steps[level] & (~0u << step); steps != 0) {
    return lists.heads[level][std::countr_zero(steps)];
  }
  if (const std::uint64_t above = level + 1 < kLevels ? lists.levels & (~0ull << (level + 1)) : 0; above != 0) {
    const unsigned found = std::countr_zero(above);
    return lists.heads[found][std::countr_zero(static_cast<unsigned>(lists.steps[found]))];
  }
  const auto own = list_of(size);
  for (std::uint64_t at = lists.heads[own.level][own.step]; at != kNone; at = block(at).next_free) {
    if (block(at).size() >= size) return at;
  }
  return std::nullopt;
}

// Cuts the block at `offset` to `size` and frees the rest, if that is a block of its own.
void Extents::split(std::uint64_t offset, Bytes size) {
  Block& kept = block(offset);
  const Bytes rest = kept.size() - size;
  if (rest < kSmallest) return;
  const std::uint64_t next = offset + kept.size();
  block(offset + size) = {.previous = offset, .size_and_free = rest, .next_free = kNone, .previous_free = kNone};
  block(next).previous = offset + size;
  kept.size_and_free = size;
  insert(offset + size);
}

std::optional<std::uint64_t> Extents::allocate(Bytes length) {
  if (length > range_.size()) return std::nullopt;
  const Bytes size = footprint(length);
  const auto found = find(size);
  if (!found) return std::nullopt;
  remove(*found);
  split(*found, size);
  control().used += block(*found).size();
  return *found + kHeader;
}

void Extents::free(std::uint64_t offset) {
  std::uint64_t at = offset - kHeader;
  FORELOAD_CHECK(!block(at).is_free(), "a stretch is freed once");
  control().used -= block(at).size();
  const std::uint64_t next = at + block(at).size();
  if (block(next).is_free()) {
    remove(next);
    block(at).size_and_free += block(next).size();
  }
  if (const std::uint64_t previous = block(at).previous; previous != kNone && block(previous).is_free()) {
    remove(previous);
    block(previous).size_and_free += block(at).size();
    at = previous;
  }
  block(at + block(at).size()).previous = at;
  insert(at);
}

Bytes Extents::used_bytes() const {
  return control().used;
}

}  // namespace foreload
