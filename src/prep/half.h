// IEEE half precision, without branches, so that loops over halves become vector code; the same bits everywhere.
#pragma once

#include <bit>
#include <cstdint>

namespace foreload {

// a if `first`, else b. A conditional would become a branch, and the loops over halves no vector code.
inline std::uint32_t choose_word(bool first, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t mask = 0u - static_cast<std::uint32_t>(first);
  return (a & mask) | (b & ~mask);
}

inline float from_half(std::uint16_t half) {
  const std::uint32_t magnitude = half & 0x7fff;
  const std::uint32_t bias =
      choose_word(magnitude >= 0x7c00, 224, 112);  // infinite and not a number: the largest exponent
  const std::uint32_t normal = (magnitude << 13) + (bias << 23);
  const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * (1.0f / 16777216.0f);
  const std::uint32_t value = choose_word(magnitude < 0x400, std::bit_cast<std::uint32_t>(subnormal), normal);
  return std::bit_cast<float>(value | static_cast<std::uint32_t>(half & 0x8000) << 16);
}

// Rounded to nearest, ties to even; as torch's .half().
inline std::uint16_t to_half(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const std::uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);  // to nearest, ties to even
  const std::uint32_t normal = (rounded >> 13) - (112u << 10);
  // A number below 2^-14 added to 1/2 is rounded to a multiple of 2^-24.
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  const std::uint32_t finite = choose_word(magnitude < 0x38800000, subnormal, normal);
  const std::uint32_t special = choose_word(magnitude > 0x7f800000, 0x7e00, 0x7c00);
  return static_cast<std::uint16_t>(choose_word(magnitude >= 0x47800000, special, finite) | (bits >> 16 & 0x8000));
}

}  // namespace foreload
