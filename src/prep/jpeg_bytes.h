// The smallest tools of all code that reads or lays out JPEG files. Pure functions.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace foreload {

// REQUIRES: the bytes are there.
inline unsigned byte_at(std::span<const std::byte> bytes, std::size_t i) {
  return static_cast<unsigned>(bytes[i]);
}
inline unsigned u16_at(std::span<const std::byte> bytes, std::size_t i) {
  return byte_at(bytes, i) << 8 | byte_at(bytes, i + 1);
}

// How many parts of that size cover the whole.
template <std::unsigned_integral T>
constexpr T parts_of(T whole, std::type_identity_t<T> size) {
  return (whole + size - 1) / size;
}

// The place in a block of each place of the zigzag: diagonals, every second one upwards.
inline constexpr auto kJpegZigzag = [] {
  std::array<std::uint8_t, 64> order{};
  std::size_t next = 0;
  for (int diagonal = 0; diagonal < 15; ++diagonal) {
    for (int i = 0; i <= diagonal; ++i) {
      const int x = diagonal % 2 == 0 ? i : diagonal - i;
      const int y = diagonal - x;
      if (x < 8 && y < 8) order[next++] = static_cast<std::uint8_t>(y * 8 + x);
    }
  }
  return order;
}();

}  // namespace foreload
