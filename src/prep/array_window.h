// Copies a window out of an array of any rank: only the bytes of the window are touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace foreload {

// Sizes and places per dimension, the slowest first (C order); all three have the same length.
struct ArrayWindow {
  std::span<const std::uint64_t> shape;   // of the whole array
  std::span<const std::uint64_t> origin;  // of the window in it
  std::span<const std::uint64_t> size;    // of the window
};

// REQUIRES: origin + size <= shape everywhere, no size is 0; `out` has room for exactly the window.
void copy_window(std::span<const std::byte> from, std::size_t element_bytes, const ArrayWindow& window,
                 std::span<std::byte> out);

}  // namespace foreload
