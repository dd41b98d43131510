// Workers that are there have other learners, too: as long as this one has its next batch, they may be right to leave
// its samples for later. Somebody who was stopped himself has seen nothing meanwhile, so no look counts for longer than
// a few.
#include "policy/standstill.h"

#include <algorithm>

namespace foreload {
namespace {

constexpr Duration kMostPerLook = 4 * Standstill::kLook;

}  // namespace

bool Standstill::lasts(const PrepLook& look) {
  const bool moved = !last_ || !last_->ready || look.prepared != last_->prepared;
  const bool still = look.ready && !moved && (look.late || !look.staffed);
  lasted_ = still ? lasted_ + std::clamp(look.now - last_->now, Duration{}, kMostPerLook) : Duration{};
  last_ = look;
  return lasted_ >= (look.staffed ? kSomebody : kNobody);
}

}  // namespace foreload
