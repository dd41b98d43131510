#include "tier/tier_stack.h"

#include "base/clock.h"

namespace foreload {

TierStack::TierStack(const Source& source, const Placement& placement, Arena& arena, std::unique_ptr<SourceTier> bottom)
    : source_(source), placement_(placement), arena_(arena), bottom_(std::move(bottom)) {}

Answer TierStack::request(const Request& request, Time now) {
  const Bytes length = source_.length(request.id);
  // Who reads far ahead must not hold the room that the next substitute needs.
  if (!request.urgent && arena_.is_urgent(request.id)) return {Ask::kNoRoom, {}};
  if (auto hit = arena_.lease(request.id, length)) return {Ask::kHit, std::move(*hit)};
  if (arena_.is_flying(request.id)) return {Ask::kJoined, {}};
  if (!arena_.is_absent(request.id)) return {Ask::kNoRoom, {}};  // it is, or was a moment ago, being changed
  if (!request.may_read || bottom_->in_flight() >= bottom_->max_depth()) return {Ask::kBusy, {}};
  std::optional<std::span<std::byte>> into;
  // A read that failed may have left a hole in the homes that later ones do not fit: then transit serves.
  if (placement_.is_home(request.id)) into = arena_.begin(request.id, length, Area::kHome);
  if (!into) into = arena_.begin(request.id, length, Area::kTransit);
  if (!into && request.urgent) into = arena_.begin(request.id, length, Area::kUrgent);
  if (!into) return {Ask::kNoRoom, {}};
  bottom_->start(request.id, *into, now);
  return {Ask::kStarted, {}};
}

void TierStack::wait(std::vector<Arrival>& arrivals, Time deadline) {
  reads_.clear();
  bottom_->wait(reads_, deadline);
  for (SourceRead& read : reads_) {
    Arrival arrival{.id = read.id,
                    .status = std::move(read.status),
                    .length = source_.length(read.id),
                    .took = read.took,
                    .retries = read.retries};
    if (arrival.status.ok()) {
      arrival.lease = arena_.commit(read.id, arrival.length);
    } else {
      arena_.abandon(read.id);
    }
    arrivals.push_back(std::move(arrival));
  }
}

void TierStack::drain() {
  bottom_->hurry(true);
  std::vector<Arrival> dropped;
  while (in_flight() > 0) {
    wait(dropped, kNever);
    dropped.clear();
  }
  bottom_->hurry(false);
}

}  // namespace foreload
