// Philox4x32-10 (Salmon et al., SC'11). How a key (seed, epoch, position, op) becomes a stream:
//
//   Philox key  64 bits   mix64(mix64(seed + c) ^ epoch)      bijective in the epoch for one seed
//   counter    128 bits   [ block | op | position low | position high ]
//
// Inside one seed, two different (epoch, position, op, block) therefore never share a Philox input.
#include "base/random.h"

#include "base/check.h"

namespace foreload {

namespace {

constexpr unsigned kRounds = 10;
constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
constexpr std::uint64_t kSeedOffset = 0x9E3779B97F4A7C15;  // so that seed 0 is not a fixed point of mix64

std::uint32_t low(std::uint64_t x) {
  return static_cast<std::uint32_t>(x);
}

std::uint32_t high(std::uint64_t x) {
  return static_cast<std::uint32_t>(x >> 32);
}

struct Product {
  std::uint64_t high;
  std::uint64_t low;
};

Product multiply(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
}

}  // namespace

PhiloxBlock philox(PhiloxBlock counter, std::array<std::uint32_t, 2> key) {
  for (unsigned round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {high(product1) ^ counter[1] ^ key[0], low(product1), high(product0) ^ counter[3] ^ key[1],
               low(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

KeyedRandom::KeyedRandom(std::uint64_t seed, Epoch epoch, Position position, std::uint32_t op) {
  const std::uint64_t key = mix64(mix64(seed + kSeedOffset) ^ epoch);
  key_ = {low(key), high(key)};
  counter_ = {0, op, low(position), high(position)};
}

std::uint32_t KeyedRandom::next_u32() {
  if (used_ == block_.size()) {
    block_ = philox(counter_, key_);
    ++counter_[0];
    FORELOAD_CHECK(counter_[0] != 0, "an op draws fewer than 2^34 numbers");
    used_ = 0;
  }
  return block_[used_++];
}

std::uint64_t KeyedRandom::next_u64() {
  const std::uint64_t first = next_u32();
  return first | std::uint64_t{next_u32()} << 32;
}

// Lemire's method: the high half of a 64 × 64 bit product; low halves below 2^64 mod bound would be
// hit once too often and are drawn again.
std::uint64_t KeyedRandom::below(std::uint64_t bound) {
  FORELOAD_CHECK(bound > 0, "a number below 0 does not exist");
  const std::uint64_t rejected = (0 - bound) % bound;
  Product product = multiply(next_u64(), bound);
  while (product.low < rejected) product = multiply(next_u64(), bound);
  return product.high;
}

}  // namespace foreload
