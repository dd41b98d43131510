#include "policy/prep_order.h"

namespace foreload {

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
