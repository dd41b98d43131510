// A generalised Feistel network over pairs (high, low).
//
//   value ──► high = value >> k,  low = its k low bits             2^k ≈ √N, high < b = ⌈N / 2^k⌉
//   even rounds: high = (high + f(low))  mod b
//   odd rounds:  low  = (low  + f(high)) mod 2^k                  a sum, not an xor: odd permutations occur too
//   ──► high << k | low; a result ≥ N (there are fewer than 2^k) is sent through again ("cycle walking")
//
// f is entry (input, round) of the SplitMix sequence whose start and step are the key. Two rounds
// shrink what is left of a bias by about min(2^k, b), so small sets get more rounds: docs/design/schedule.md.
#include "plan/keyed_bijection.h"

#include <algorithm>
#include <bit>

#include "base/random.h"

namespace foreload {
namespace {

constexpr unsigned kMinRounds = 8;
constexpr unsigned kBiasBits = 32;  // what all rounds together remove from a bias
constexpr std::uint32_t kFamilyTag = 0x66616d79;

std::uint32_t low_word(std::uint64_t x) {
  return static_cast<std::uint32_t>(x);
}

std::uint32_t high_word(std::uint64_t x) {
  return static_cast<std::uint32_t>(x >> 32);
}

std::uint64_t scale(std::uint64_t fraction, std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(fraction) * bound) >> 64);
}

OrderKey key_from(const PhiloxBlock& block) {
  return {.start = std::uint64_t{block[1]} << 32 | block[0], .step = std::uint64_t{block[3]} << 32 | block[2] | 1};
}

}  // namespace

OrderKey order_key(std::uint64_t seed, Epoch epoch, std::uint32_t tag) {
  return key_from(philox({low_word(epoch), high_word(epoch), tag, 0}, {low_word(seed), high_word(seed)}));
}

OrderKey order_key(const OrderKey& family, std::uint64_t index) {
  return key_from(philox({low_word(index), high_word(index), kFamilyTag, low_word(family.step)},
                         {low_word(family.start), high_word(family.start)}));
}

KeyedBijection::KeyedBijection(std::uint64_t size, const OrderKey& key)
    : size_(size),
      low_bits_(std::max(1U, static_cast<unsigned>(std::bit_width(size - 1)) / 2)),
      high_size_(((size - 1) >> low_bits_) + 1),
      rounds_(std::max(kMinRounds, 2 * ((kBiasBits + low_bits_ - 1) / low_bits_))),
      key_(key) {}

std::uint64_t KeyedBijection::forward(std::uint64_t value) const {
  value = walk_forward(value);
  while (value >= size_) value = walk_forward(value);
  return value;
}

std::uint64_t KeyedBijection::backward(std::uint64_t value) const {
  value = walk_backward(value);
  while (value >= size_) value = walk_backward(value);
  return value;
}

// Each value is a long chain of operations; a few side by side keep the processor busy.
void KeyedBijection::forward(std::uint64_t first, std::span<std::uint64_t> out) const {
  constexpr std::size_t kLanes = 4;
  std::size_t done = 0;
  for (; done + kLanes <= out.size(); done += kLanes) {
    std::uint64_t high[kLanes];
    std::uint64_t low[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      high[lane] = (first + done + lane) >> low_bits_;
      low[lane] = (first + done + lane) & mask();
    }
    for (unsigned round = 0; round < rounds_; round += 2) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) round_forward(round, high[lane], low[lane]);
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t value = high[lane] << low_bits_ | low[lane];
      out[done + lane] = value < size_ ? value : forward(value);
    }
  }
  for (; done < out.size(); ++done) out[done] = forward(first + done);
}

inline std::uint64_t KeyedBijection::draw(std::uint64_t input, unsigned round) const {
  return mix64(key_.start + (input << 8 | round) * key_.step);
}

inline void KeyedBijection::round_forward(unsigned round, std::uint64_t& high, std::uint64_t& low) const {
  high += scale(draw(low, round), high_size_);
  high -= high >= high_size_ ? high_size_ : 0;
  low = (low + draw(high, round + 1)) & mask();
}

inline std::uint64_t KeyedBijection::walk_forward(std::uint64_t value) const {
  std::uint64_t high = value >> low_bits_;
  std::uint64_t low = value & mask();
  for (unsigned round = 0; round < rounds_; round += 2) round_forward(round, high, low);
  return high << low_bits_ | low;
}

inline std::uint64_t KeyedBijection::walk_backward(std::uint64_t value) const {
  std::uint64_t high = value >> low_bits_;
  std::uint64_t low = value & mask();
  for (unsigned round = rounds_; round > 0; round -= 2) {
    low = (low - draw(high, round - 1)) & mask();
    const std::uint64_t added = scale(draw(low, round - 2), high_size_);
    high += high < added ? high_size_ - added : 0 - added;
  }
  return high << low_bits_ | low;
}

}  // namespace foreload
