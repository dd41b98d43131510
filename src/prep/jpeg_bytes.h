// The smallest tools of all code that reads or lays out JPEG files. Pure functions.
#pragma once

#include <concepts>
#include <cstddef>
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

}  // namespace foreload
