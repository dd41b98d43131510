// Extents: allocates and frees stretches of one range of memory. Segregated free lists (two-level size classes)
// with coalescing: O(1), and a range that is only filled loses nothing but 16 bytes per stretch. All state lies
// inside the range as offsets, so the range may be mapped anywhere. The caller locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "foreload/types.h"

namespace foreload {

class Extents {
 public:
  // What a stretch of `length` bytes takes, and what the range itself needs.
  static Bytes footprint(Bytes length);
  static Bytes overhead();

  // Makes the range one free stretch. REQUIRES: 16-byte aligned, at least overhead() + footprint(1) long.
  static Extents format(std::span<std::byte> range);

  // Offset of `length` free bytes from the range's start, 16-byte aligned; nothing when none is free.
  std::optional<std::uint64_t> allocate(Bytes length);
  // REQUIRES: allocate() returned `offset` and it was not freed since.
  void free(std::uint64_t offset);

  Bytes used_bytes() const;  // Σ footprint of what is allocated

 private:
  struct Control;
  struct Block;
  explicit Extents(std::span<std::byte> range) : range_(range) {}

  Control& control() const;
  Block& block(std::uint64_t offset) const;
  void insert(std::uint64_t offset);
  void remove(std::uint64_t offset);
  std::optional<std::uint64_t> find(Bytes size) const;
  void split(std::uint64_t offset, Bytes size);

  std::span<std::byte> range_;
};

}  // namespace foreload
