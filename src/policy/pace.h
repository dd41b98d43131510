// Pace: when the learner needs what, and so whether there is time for work that nobody waits for. Filling homes ahead
// of need and rewriting both go by it. A plain value: times come in as arguments.
#pragma once

#include <algorithm>
#include <cstdint>

#include "foreload/types.h"

namespace foreload {

struct Pace {
  Time since{};     // when the learner gave back its last batch, and turned to the next
  Duration step{};  // between two of these; 0: not known

  // How long until it needs the batch that stands `left` behind the one that it uses. Who is late already, with batches
  // at hand, is expected to be as slow with each of them.
  Duration slack(Time now, std::uint64_t left) const {
    if (left == 0) return {};
    const auto batches = static_cast<std::int64_t>(std::min<std::uint64_t>(left, 1 << 20));
    const Duration used = now - since;
    return std::max(step * batches - used, std::max(step, used) * (batches - 1));
  }
};

// Background work may begin when the time that is left is this often its cost: the work that it holds up takes time,
// too.
inline constexpr int kSpareTimes = 2;

constexpr bool is_spare(Duration slack, Duration cost) {
  return slack > Duration{} && slack >= cost * kSpareTimes;
}

}  // namespace foreload
