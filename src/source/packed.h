// Packed: a column of integers, each stored as its distance from the smallest in 0, 1, 2, 4 or 8 bytes. A column
// whose values are all equal takes no space. Access is by copy, so the bytes need no alignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace foreload {

// What is needed to read a packed column; the bytes belong to someone else.
class Packed {
 public:
  Packed() = default;
  // REQUIRES: width is 0, 1, 2, 4 or 8; bytes holds count × width.
  Packed(const std::byte* bytes, std::uint64_t count, unsigned width, std::int64_t base)
      : bytes_(bytes), count_(count), base_(static_cast<std::uint64_t>(base)), width_(width) {}

  std::uint64_t size() const { return count_; }
  // REQUIRES: i < size().
  std::int64_t operator[](std::uint64_t i) const {
    std::uint64_t distance = 0;
    switch (width_) {
      case 1:
        distance = load<std::uint8_t>(i);
        break;
      case 2:
        distance = load<std::uint16_t>(i);
        break;
      case 4:
        distance = load<std::uint32_t>(i);
        break;
      case 8:
        distance = load<std::uint64_t>(i);
        break;
      default:
        break;
    }
    return static_cast<std::int64_t>(base_ + distance);
  }

 private:
  template <typename T>
  T load(std::uint64_t i) const {
    T value;
    std::memcpy(&value, bytes_ + i * sizeof(T), sizeof(T));
    return value;
  }

  const std::byte* bytes_ = nullptr;
  std::uint64_t count_ = 0;
  std::uint64_t base_ = 0;
  unsigned width_ = 0;
};

struct PackedColumn {
  std::vector<std::byte> bytes;
  std::uint64_t count = 0;
  unsigned width = 0;
  std::int64_t base = 0;
};

PackedColumn pack(std::span<const std::int64_t> values);

}  // namespace foreload
