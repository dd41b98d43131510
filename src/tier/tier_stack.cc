#include "tier/tier_stack.h"

#include "base/clock.h"

namespace foreload {

TierStack::TierStack(const Source& source, std::unique_ptr<EvictionPolicy> policy, Arena& arena,
                     std::unique_ptr<SourceTier> bottom, std::unique_ptr<DiskTier> disk)
    : source_(source),
      arena_(arena),
      homes_(source, arena, std::move(policy)),
      bottom_(std::move(bottom)),
      disk_(std::move(disk)) {
  if (disk_) disk_->start([this] { wake(); });
}

Answer TierStack::request(const Request& request, Time now) {
  const Bytes length = source_.length(request.id);
  if (request.moment) homes_.use(request.id, *request.moment);
  // Who reads far ahead must not hold the room that the next substitute needs.
  if (!request.urgent && arena_.is_urgent(request.id)) return {Ask::kNoRoom, {}};
  if (auto hit = arena_.lease(request.id, length)) return {Ask::kHit, std::move(*hit)};
  if (arena_.is_flying(request.id)) return {Ask::kJoined, {}};
  if (!arena_.is_absent(request.id)) return {Ask::kNoRoom, {}};  // it is, or was a moment ago, being changed
  if (!request.may_read || bottom_->in_flight() >= bottom_->max_depth()) return {Ask::kBusy, {}};
  if (disk_ && disk_->is_full()) return {Ask::kBusy, {}};
  const auto into = take_room(request, length);
  if (!into) return {Ask::kNoRoom, {}};
  return {Ask::kStarted, {}, start(request.id, *into, now)};
}

std::optional<std::span<std::byte>> TierStack::take_room(const Request& request, Bytes length) {
  // Also when a home is meant for it: a read that failed may have left a hole that later ones do not fit.
  auto into = homes_.begin(request.id, request.moment.has_value());
  if (!into) into = arena_.begin(request.id, length, Area::kTransit);
  if (!into && request.urgent) into = arena_.begin(request.id, length, Area::kUrgent);
  return into;
}

Origin TierStack::start(SampleId id, std::span<std::byte> into, Time now) {
  const auto place = disk_ ? disk_->store().begin_read(id) : std::nullopt;
  if (!place) {
    bottom_->start(id, into, now);
    return Origin::kSource;
  }
  from_disk_[id] = {.into = into};
  bottom_->start_from(place->fd, place->offset, id, into, now);
  return Origin::kDisk;
}

bool TierStack::land(const SourceRead& read, DiskFlight& flight) {
  if (read.status.ok() && disk_->store().end_read(read.id, flight.into)) return true;
  if (!read.status.ok()) disk_->store().drop(read.id);
  flight.dropped = true;
  if (draining_) return true;
  bottom_->start(read.id, flight.into, now());  // in the place of the flight that ended
  return false;
}

void TierStack::wait(std::vector<Arrival>& arrivals, Time deadline) {
  reads_.clear();
  bottom_->wait(reads_, deadline);
  for (SourceRead& read : reads_) {
    Arrival arrival{.id = read.id, .length = source_.length(read.id), .took = read.took, .retries = read.retries};
    bool wrong = !read.status.ok();
    if (const auto flight = from_disk_.find(read.id); flight != from_disk_.end()) {
      const bool again = flight->second.dropped;
      if (!again && !land(read, flight->second)) continue;
      arrival.origin = again ? Origin::kSource : Origin::kDisk;
      arrival.dropped = flight->second.dropped;
      wrong = wrong || (!again && arrival.dropped);
      from_disk_.erase(flight);
    }
    arrival.status = std::move(read.status);
    if (wrong) {
      arena_.abandon(read.id);
      homes_.lost(read.id);
    } else {
      arrival.lease = arena_.commit(read.id, arrival.length);
      // The urgent range is for the next substitute, and never waits for a disk.
      if (disk_ && disk_->wants(read.id) && !arena_.is_urgent(read.id)) {
        disk_->offer(read.id, arena_.share(arrival.lease));
      }
    }
    arrivals.push_back(std::move(arrival));
  }
}

void TierStack::drain() {
  bottom_->hurry(true);
  draining_ = true;
  std::vector<Arrival> dropped;
  while (in_flight() > 0) {
    wait(dropped, kNever);
    dropped.clear();
  }
  draining_ = false;
  bottom_->hurry(false);
}

}  // namespace foreload
