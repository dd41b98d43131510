// exp2 multiplies the roots 2^(1/2), 2^(1/4), 2^(1/8), … that the bits of the fraction select; the roots
// themselves are integer square roots, taken at compile time. log2 goes the other way: square, and
// whenever the square reaches 2 the next bit is one. Both work with 62 bits after the point.
#include "prep/fixed_point.h"

#include <array>
#include <bit>

#include "base/check.h"

namespace foreload {

namespace {

constexpr int kBits = 62;

constexpr std::array<std::uint64_t, 32> roots_of_two() {
  std::array<std::uint64_t, 32> roots{};
  std::uint64_t last = 1ull << (kBits + 1);
  for (auto& root : roots) root = last = isqrt(Uint128{last} << kBits);
  return roots;
}

constexpr auto kRoots = roots_of_two();

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>(Uint128{a} * b >> kBits);
}

}  // namespace

std::uint64_t to_q32(double x) {
  FORELOAD_CHECK(x >= 0 && x < 2147483648.0, "callers check the range of parameters first");
  return static_cast<std::uint64_t>(x * 4294967296.0 + 0.5);
}

std::uint64_t exp2_q32(std::int64_t x) {
  const std::int64_t whole = x >> 32;
  FORELOAD_CHECK(whole >= -32 && whole < 29, "the exponents are logarithms of checked ratios");
  const auto fraction = static_cast<std::uint32_t>(x);
  std::uint64_t power = 1ull << kBits;
  for (unsigned i = 0; i < kRoots.size(); ++i) {
    if (fraction >> (31 - i) & 1) power = product(power, kRoots[i]);
  }
  const auto shift = static_cast<unsigned>(30 - whole);
  return ((power >> (shift - 1)) + 1) >> 1;
}

std::int64_t log2_q32(std::uint64_t x) {
  FORELOAD_CHECK(x > 0, "zero has no logarithm");
  const int top = std::bit_width(x) - 1;
  std::uint64_t mantissa = top > kBits ? x >> (top - kBits) : x << (kBits - top);
  std::uint64_t fraction = 0;
  for (int bit = 31; bit >= 0; --bit) {
    mantissa = product(mantissa, mantissa);
    if (mantissa >> (kBits + 1) == 0) continue;
    mantissa >>= 1;
    fraction |= 1ull << bit;
  }
  return (static_cast<std::int64_t>(top) - 32) * static_cast<std::int64_t>(kOneQ32) +
         static_cast<std::int64_t>(fraction);
}

}  // namespace foreload
