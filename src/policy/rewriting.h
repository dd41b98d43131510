// Rewriting: is a worker's time well spent on making a cached JPEG crop-addressable? Pure.
//
// Measured: the rewrite, with its proof, costs as much as 23 epochs of region decode save (bench/prep). So it
// must be time that nobody misses (policy/pace), and enough epochs must follow; a run without a known end counts as
// long.
#pragma once

#include <limits>

#include "foreload/loader.h"
#include "policy/pace.h"

namespace foreload {

inline constexpr Epoch kRewritePaysAfter = 24;

struct RewriteChance {
  bool idle = false;                                      // the worker has nothing to prepare
  bool bytes_missing = false;                             // so has another one, and no batch is ready
  Epoch epochs_left = std::numeric_limits<Epoch>::max();  // after the running one; many when it is not known
  Duration slack{};                                       // until the learner needs what is not prepared yet
  Duration cost{};                                        // of one rewrite; 0: not known
};

constexpr bool should_rewrite(Rewrite mode, const RewriteChance& chance) {
  if (mode == Rewrite::kOff) return false;
  if (mode == Rewrite::kOn) return true;
  if (!chance.idle || chance.epochs_left < kRewritePaysAfter) return false;
  return chance.bytes_missing || is_spare(chance.slack, chance.cost);
}

}  // namespace foreload
