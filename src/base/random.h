// Keyed randomness: Philox4x32-10, a counter-based generator. The stream of an op is a pure function
// of (seed, epoch, position, op): nothing is carried from sample to sample, and the same numbers come
// out on every machine (golden vectors in random_test.cc).
#pragma once

#include <array>
#include <cstdint>

#include "foreload/types.h"

namespace foreload {

using PhiloxBlock = std::array<std::uint32_t, 4>;
PhiloxBlock philox(PhiloxBlock counter, std::array<std::uint32_t, 2> key);

// A bijective mixer of 64 bits (murmur3's finaliser).
constexpr std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  x ^= x >> 33;
  return x;
}

class KeyedRandom {
 public:
  KeyedRandom(std::uint64_t seed, Epoch epoch, Position position, std::uint32_t op);

  std::uint32_t next_u32();
  std::uint64_t next_u64();
  // Uniform in 0 … bound-1, unbiased. REQUIRES: bound > 0.
  std::uint64_t below(std::uint64_t bound);
  // Uniform fixed point: 0 … 2^32-1 stands for [0, 1).
  std::uint32_t unit32() { return next_u32(); }

 private:
  std::array<std::uint32_t, 2> key_;
  PhiloxBlock counter_;
  PhiloxBlock block_{};
  unsigned used_ = 4;
};

}  // namespace foreload
