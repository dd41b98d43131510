// Random parameters of ops, drawn from integers: the same numbers on every machine.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "prep/fixed_point.h"

namespace foreload {

// True with probability p. REQUIRES: 0 <= p <= 1.
class Chance {
 public:
  explicit Chance(double p) : p_q32_(to_q32(p)) {}
  bool draw(KeyedRandom& random) const { return random.unit32() < p_q32_; }

 private:
  std::uint64_t p_q32_;
};

// Uniform from lowest to highest, in steps of 2^-32 at least. REQUIRES: lowest <= highest, both between ±2^20.
class Uniform {
 public:
  Uniform(double lowest, double highest) : lowest_(signed_q32(lowest)), highest_(signed_q32(highest)) {}

  bool is_always(double value) const { return lowest_ == highest_ && lowest_ == signed_q32(value); }
  std::int64_t draw_q32(KeyedRandom& random) const { return between_q32(lowest_, highest_, random.unit32()); }
  // The same number, exactly.
  double draw(KeyedRandom& random) const { return static_cast<double>(draw_q32(random)) / 4294967296.0; }

 private:
  static std::int64_t signed_q32(double x) {
    const auto size = static_cast<std::int64_t>(to_q32(x < 0 ? -x : x));
    return x < 0 ? -size : size;
  }

  std::int64_t lowest_;
  std::int64_t highest_;
};

}  // namespace foreload
