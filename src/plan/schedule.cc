// A keyed bijection of 0 … N-1: a generalised Feistel network over pairs (high, low).
//
//   position ──► high = position >> k,  low = its k low bits      2^k ≈ √N, high < b = ⌈N / 2^k⌉
//   even rounds: high = (high + f(low))  mod b
//   odd rounds:  low  = (low  + f(high)) mod 2^k                  a sum, not an xor: odd permutations occur too
//   ──► high << k | low; a result ≥ N (there are fewer than 2^k) is sent through again ("cycle walking")
//
// f is entry (input, round) of the SplitMix sequence whose start and step are the epoch's key. Two rounds
// shrink what is left of a bias by about min(2^k, b), so small sets get more rounds: docs/design/schedule.md.
#include "foreload/schedule.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/random.h"

namespace foreload {

namespace {

constexpr std::uint32_t kOrderTag = 0x6f726472;  // tells this use of Philox from every other

// Ops of a chain count from 0 upwards; substitutes from here downwards.
constexpr std::uint32_t kSubstituteOp = 0xffffffff;

constexpr unsigned kMinRounds = 8;
constexpr unsigned kBiasBits = 32;  // what all rounds together remove from a bias

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

class Network {
 public:
  // REQUIRES: options.samples > 0.
  Network(const ScheduleOptions& options, Epoch epoch)
      : low_bits_(std::max(1U, static_cast<unsigned>(std::bit_width(options.samples - 1)) / 2)),
        high_size_(((options.samples - 1) >> low_bits_) + 1),
        rounds_(std::max(kMinRounds, 2 * ((kBiasBits + low_bits_ - 1) / low_bits_))) {
    const PhiloxBlock key =
        philox({low_word(epoch), high_word(epoch), kOrderTag, 0}, {low_word(options.seed), high_word(options.seed)});
    start_ = std::uint64_t{key[1]} << 32 | key[0];
    step_ = std::uint64_t{key[3]} << 32 | key[2] | 1;
  }

  std::uint64_t forward(std::uint64_t value) const {
    std::uint64_t high = value >> low_bits_;
    std::uint64_t low = value & mask();
    for (unsigned round = 0; round < rounds_; round += 2) {
      high += scale(draw(low, round), high_size_);
      high -= high >= high_size_ ? high_size_ : 0;
      low = (low + draw(high, round + 1)) & mask();
    }
    return high << low_bits_ | low;
  }

  std::uint64_t backward(std::uint64_t value) const {
    std::uint64_t high = value >> low_bits_;
    std::uint64_t low = value & mask();
    for (unsigned round = rounds_; round > 0; round -= 2) {
      low = (low - draw(high, round - 1)) & mask();
      const std::uint64_t added = scale(draw(low, round - 2), high_size_);
      high += high < added ? high_size_ - added : 0 - added;
    }
    return high << low_bits_ | low;
  }

 private:
  std::uint64_t mask() const { return (std::uint64_t{1} << low_bits_) - 1; }
  std::uint64_t draw(std::uint64_t input, unsigned round) const { return mix64(start_ + (input << 8 | round) * step_); }

  unsigned low_bits_;
  std::uint64_t high_size_;
  unsigned rounds_;
  std::uint64_t start_;
  std::uint64_t step_;
};

}  // namespace

Schedule::Schedule(const ScheduleOptions& options) : options_(options) {}

SampleId Schedule::sample_at(Epoch epoch, Position position) const {
  FORELOAD_CHECK(position < options_.samples, "positions of an epoch are 0 … size()-1");
  if (!options_.shuffle) return position;
  const Network network(options_, epoch);
  SampleId id = network.forward(position);
  while (id >= options_.samples) id = network.forward(id);
  return id;
}

Position Schedule::position_of(Epoch epoch, SampleId id) const {
  FORELOAD_CHECK(id < options_.samples, "sample ids are 0 … size()-1");
  if (!options_.shuffle) return id;
  const Network network(options_, epoch);
  Position position = network.backward(id);
  while (position >= options_.samples) position = network.backward(position);
  return position;
}

SampleId Schedule::substitute(Epoch epoch, Position position, unsigned k) const {
  FORELOAD_CHECK(options_.samples > 0, "an empty dataset has no substitutes");
  FORELOAD_CHECK(k >= 1, "substitutes count from 1");
  return KeyedRandom(options_.seed, epoch, position, kSubstituteOp - k).below(options_.samples);
}

}  // namespace foreload
