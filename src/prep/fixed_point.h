// Fixed-point arithmetic for random parameters: roots, powers and logarithms of two from integers alone,
// so that a crop is the same on every machine and compiler (golden vectors in fixed_point_test.cc).
// A Q32 number has 32 bits after the point.
#pragma once

#include <cstdint>

namespace foreload {

__extension__ using Uint128 = unsigned __int128;

inline constexpr std::uint64_t kOneQ32 = 1ull << 32;

// The largest r with r·r <= x.
constexpr std::uint64_t isqrt(Uint128 x) {
  Uint128 root = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const Uint128 tried = root | Uint128{1} << bit;
    if (tried * tried <= x) root = tried;
  }
  return static_cast<std::uint64_t>(root);
}

// The nearest Q32 number. REQUIRES: 0 <= x < 2^31.
std::uint64_t to_q32(double x);

// 2^x, x and result in Q32; error below 2^-31 relative or 2^-32 absolute. REQUIRES: -32 <= x < 29.
std::uint64_t exp2_q32(std::int64_t x);

// Binary logarithm, rounded down to 32 bits after the point. REQUIRES: x > 0.
std::int64_t log2_q32(std::uint64_t x);

// lo + (hi - lo) · unit, where unit 0 … 2^32-1 stands for [0, 1). REQUIRES: lo <= hi, hi - lo < 2^63.
constexpr std::int64_t between_q32(std::int64_t lo, std::int64_t hi, std::uint32_t unit) {
  const Uint128 span = static_cast<std::uint64_t>(hi - lo);
  return lo + static_cast<std::int64_t>(span * unit >> 32);
}

}  // namespace foreload
