// Random shares from the distribution Beta(alpha, alpha), in fixed point: the same on every machine (golden vectors in
// beta_test.cc).
#pragma once

#include <cstdint>

#include "base/random.h"

namespace foreload {

inline constexpr std::uint32_t kOneQ16 = 1u << 16;

// 0 … kOneQ16. REQUIRES: alpha, in Q32, is from 0.01 to 1000.
std::uint32_t draw_beta_q16(std::uint64_t alpha_q32, KeyedRandom& random);

}  // namespace foreload
