#include "policy/prep_order.h"

#include <algorithm>

namespace foreload {

Time needed_at(const LearnerPace& pace, std::uint64_t number, Time now) {
  constexpr Duration kSlowest = std::chrono::hours(1);
  const Duration step = std::clamp(pace.step, Duration{}, kSlowest);
  const Time next = std::max(now, std::min(pace.last, now) + step);
  const std::uint64_t behind = number - std::min(number, pace.next);
  return next + step * static_cast<std::int64_t>(std::min<std::uint64_t>(behind, 1 << 16));
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
