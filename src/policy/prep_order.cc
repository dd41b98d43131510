#include "policy/prep_order.h"

#include <algorithm>

namespace foreload {

PrepNeed need_of(const LearnerPace& pace, std::uint64_t number, Time now) {
  constexpr Duration kSlowest = std::chrono::hours(1);
  const Duration step = std::clamp(pace.step, Duration{}, kSlowest);
  const Time last = std::min(pace.last, now);
  const std::uint64_t before = number - std::min(number, pace.next);
  const Time at =
      std::max(now, last + step) + step * static_cast<std::int64_t>(std::min<std::uint64_t>(before, 1 << 16));
  return {.at = at, .before = before, .last = last};
}

std::optional<std::uint32_t> soonest_needed(std::span<const PrepCandidate> candidates) {
  const PrepCandidate* best = nullptr;
  for (const PrepCandidate& candidate : candidates) {
    if (candidate.ready == 0) continue;
    if (best == nullptr || candidate.needed_at < best->needed_at) best = &candidate;
  }
  if (best == nullptr) return std::nullopt;
  return best->slot;
}

}  // namespace foreload
