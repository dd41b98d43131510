// Two exact rejection methods that need only powers and roots.
//   alpha < 1 (Jöhnk)   X = U^(1/alpha), Y = V^(1/alpha); given X + Y <= 1, X / (X + Y) is Beta(alpha, alpha).
//                       The quotient is formed from the difference of logarithms: both may be far below 2^-32.
//   else (Ulrich)       (U, V) in the unit disc, S = U² + V²: 1/2 + U·V/S · sqrt(1 - S^(2 / (2·alpha - 1))).
// Each try succeeds with probability 1/2 or more.
#include "prep/beta.h"

#include <algorithm>
#include <optional>

#include "prep/fixed_point.h"

namespace foreload {

namespace {

constexpr int kMostTries = 128;
constexpr std::uint64_t kSmallest = 32 * kOneQ32;  // -log2 of what Q32 can no longer hold

std::uint64_t power_of_half(std::uint64_t exponent_q32) {
  return exponent_q32 > kSmallest ? 0 : exp2_q32(-static_cast<std::int64_t>(exponent_q32));
}

// -log2(x) · over / under, x in Q32 and at most 1.
std::uint64_t scaled_log(std::uint64_t x_q32, std::uint64_t over, std::uint64_t under) {
  const auto log = static_cast<std::uint64_t>(-log2_q32(x_q32));
  return static_cast<std::uint64_t>(Uint128{log} * over / under);
}

std::optional<std::uint64_t> try_johnk(std::uint64_t alpha_q32, KeyedRandom& random) {
  const std::uint64_t x = scaled_log(std::uint64_t{random.unit32()} + 1, kOneQ32, alpha_q32);
  const std::uint64_t y = scaled_log(std::uint64_t{random.unit32()} + 1, kOneQ32, alpha_q32);
  if (power_of_half(x) + power_of_half(y) > kOneQ32) return std::nullopt;
  const std::uint64_t ratio = power_of_half(std::max(x, y) - std::min(x, y));  // smaller by larger
  const auto larger = static_cast<std::uint64_t>((Uint128{kOneQ32} << 32) / (kOneQ32 + ratio));
  return x <= y ? larger : kOneQ32 - larger;
}

std::optional<std::uint64_t> try_ulrich(std::uint64_t alpha_q32, KeyedRandom& random) {
  const std::uint32_t first = random.unit32();
  const std::uint32_t second = random.unit32();
  // Odd numbers between -2^32 and 2^32: magnitude and sign.
  const std::uint64_t u = 2 * std::uint64_t{first >> 1} + 1;
  const std::uint64_t v = 2 * std::uint64_t{second >> 1} + 1;
  const Uint128 square = Uint128{u} * u + Uint128{v} * v;
  if (square > Uint128{1} << 64) return std::nullopt;
  const auto s = std::max<std::uint64_t>(static_cast<std::uint64_t>(square >> 32), 1);
  const std::uint64_t power = power_of_half(scaled_log(s, 2 * kOneQ32, 2 * alpha_q32 - kOneQ32));
  const std::uint64_t root = isqrt(Uint128{kOneQ32 - power} << 32);
  const auto quotient = static_cast<std::uint64_t>((Uint128{u} * v << 32) / square);  // at most 1/2
  const auto distance = static_cast<std::uint64_t>(Uint128{quotient} * root >> 32);
  return (first & 1) == (second & 1) ? kOneQ32 / 2 + distance : kOneQ32 / 2 - distance;
}

}  // namespace

std::uint32_t draw_beta_q16(std::uint64_t alpha_q32, KeyedRandom& random) {
  for (int i = 0; i < kMostTries; ++i) {
    const auto share = alpha_q32 < kOneQ32 ? try_johnk(alpha_q32, random) : try_ulrich(alpha_q32, random);
    if (share) return static_cast<std::uint32_t>((*share + (1u << 15)) >> 16);
  }
  return kOneQ16 / 2;
}

}  // namespace foreload
