#include "tier/tier_stack.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"

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

bool TierStack::lacks(SampleId id) const {
  if (!arena_.is_absent(id) || flights_.contains(id)) return false;
  if (shared_ != nullptr && shared_->has_home(id)) return !shared_->is_resident(id);
  if (is_doubted(id)) return true;
  return homes_.plans(id) || (disk_ != nullptr && disk_->takes_all() && wants_on_disk(id));
}

// Copies of what has its home elsewhere are kept once per host.
bool TierStack::wants_on_disk(SampleId id) const {
  if (disk_ == nullptr || !disk_->wants(id)) return false;
  return seat_ == nullptr || seat_->is_home(id) || !seat_->has_beside(id);
}

bool TierStack::is_doubted(SampleId id) const {
  return seat_ != nullptr && disk_ && seat_->is_home(id) && disk_->store().has(id) && !seat_->is_on_disk(id);
}

bool TierStack::is_kept_here(SampleId id) const {
  if (seat_ != nullptr && seat_->is_home(id)) return true;
  return shared_ != nullptr && is_kept_here_(id) && shared_->has_home(id);
}

std::optional<SampleId> TierStack::take_wanted() {
  if (const auto id = shared_ != nullptr ? shared_->take_wanted() : std::nullopt) return id;
  const auto id = seat_ != nullptr ? seat_->take_wanted() : std::nullopt;
  if (id) (void)write_home(*id);
  return id;
}

bool TierStack::write_home(SampleId id) {
  if (seat_ == nullptr || !seat_->is_home(id) || !wants_on_disk(id) || !disk_->takes_all()) return true;
  auto lease = shared_ != nullptr ? shared_->lease(id, source_.length(id)) : std::nullopt;
  if (!lease) return true;
  if (!disk_->has_leisure()) return false;
  disk_->offer(id, std::move(*lease));
  return true;
}

Origin TierStack::nearest(SampleId id) const {
  if (on_disk(id)) return Origin::kDisk;
  if (peers_ != nullptr && !peers_->rests() && source_.length(id) <= peers_->longest() && home_at_(id))
    return Origin::kPeer;
  return Origin::kSource;
}

bool TierStack::has_home(SampleId id) const {
  return homes_.plans(id) || (shared_ != nullptr && shared_->has_home(id));
}

bool TierStack::keeps(SampleId id) const {
  if (homes_.evicts() || homes_.plans(id)) return true;
  if (shared_ != nullptr && shared_->has_home(id)) return true;
  if (seat_ != nullptr && (seat_->is_home_beside(id) || seat_->has_beside(id))) return true;
  return disk_ != nullptr && (disk_->wants(id) || disk_->store().has(id));
}

// A part serves only the one who asked for it. What was dropped since is forgotten.
bool TierStack::is_partial(SampleId id) {
  if (!partial_.contains(id)) return false;
  if (!arena_.is_absent(id)) return true;
  partial_.erase(id);
  return false;
}

void TierStack::remember_partial(SampleId id) {
  constexpr std::size_t kMany = 4096;
  if (partial_.size() >= kMany) std::erase_if(partial_, [this](SampleId old) { return arena_.is_absent(old); });
  partial_.insert(id);
}

bool TierStack::is_busy(const Flight& flight) const {
  return bottom_->in_flight() + (flight.part && !flight.part->is_cut() ? 2 : 1) > bottom_->max_depth();
}

Answer TierStack::request(const Request& request, Time now) {
  const Bytes length = source_.length(request.id);
  homes_.at(now);
  if (request.moment) homes_.use(request.id, *request.moment);
  if (is_partial(request.id)) return {Ask::kNoRoom, {}};
  // Who reads far ahead must not hold the room that the next substitute needs.
  if (!request.urgent && arena_.is_urgent(request.id)) return {Ask::kNoRoom, {}};
  // Nor the room through which the disk is filled: it comes from there in a moment.
  if (!request.urgent && arena_.is_onward(request.id)) return {Ask::kNoRoom, {}};
  if (auto hit = arena_.lease(request.id, length)) return {Ask::kHit, std::move(*hit)};
  if (shared_ != nullptr) {
    if (auto hit = shared_->lease(request.id, length)) return {Ask::kHit, std::move(*hit)};
  }
  const auto flying = flights_.find(request.id);
  if (flying != flights_.end()) return {Ask::kJoined, {}, take_over(flying->second)};
  if (!arena_.is_absent(request.id)) return {Ask::kNoRoom, {}};  // it is, or was a moment ago, being changed
  if (disk_ && disk_->is_full()) return {Ask::kBusy, {}};
  if (request.fill && wants_on_disk(request.id) && !disk_->has_leisure()) return {Ask::kBusy, {}};
  if (request.urgent && is_busy({})) return {Ask::kBusy, {}};
  Ask why = Ask::kNoRoom;
  const auto room = take_room(request, length, now, why);
  if (!room) return {why, {}};
  Flight& flight = flights_[request.id] = {.into = room->into,
                                           .asked = request.from,
                                           .origin = request.from,
                                           .fill = request.fill,
                                           .shared = room->shared,
                                           .part = room->shared ? std::nullopt : request.part};
  if (request.fill) filling_[static_cast<std::size_t>(request.from)] += length;
  if (flight.part) remember_partial(request.id);
  if (request.urgent) {
    start(request.id, flight, now);
  } else {
    queues_[static_cast<std::size_t>(request.from)].push_back(request.id);
  }
  return {Ask::kQueued, {}};
}

std::optional<TierStack::Flight> TierStack::take_room(const Request& request, Bytes length, Time now, Ask& why) {
  // It is at home on the disk of another learner, who is to read it, for all.
  const bool may_wait = seat_ != nullptr && request.from == Origin::kSource && !request.alone;
  if (may_wait && !seat_->has_beside(request.id) && seat_->ask_for(request.id, now)) {
    why = Ask::kElsewhere;
    return std::nullopt;
  }
  if (shared_ != nullptr && !request.alone) {
    std::span<std::byte> into;
    const SharedArena::Begun begun = shared_->begin(request.id, length, into);
    if (begun == SharedArena::Begun::kMine) return Flight{.into = into, .shared = true};
    why = begun == SharedArena::Begun::kNoHome ? Ask::kNoRoom : Ask::kElsewhere;
    if (begun != SharedArena::Begun::kNoHome) return std::nullopt;
  }
  // Also when a home is meant for it: a read that failed may have left a hole that later ones do not fit.
  auto into = homes_.begin(request.id, request.moment.has_value());
  // Batches that nobody takes fill transit: what goes to the disk has room of its own.
  if (!into) into = arena_.begin(request.id, length, request.far ? Area::kOnward : Area::kTransit);
  if (!into && request.far && request.urgent) into = arena_.begin(request.id, length, Area::kTransit);
  if (!into && request.urgent && !request.far) into = arena_.begin(request.id, length, Area::kUrgent);
  if (!into) return std::nullopt;
  return Flight{.into = *into};
}

TierStack::Place TierStack::place_of(std::span<const std::byte> bytes) const {
  const std::span<const std::byte> own = arena_.memory();
  const bool is_own = bytes.data() >= own.data() && bytes.data() < own.data() + own.size();
  const std::byte* start = is_own ? own.data() : shared_->memory().data();
  return {is_own ? 0u : 1u, static_cast<std::uint64_t>(bytes.data() - start)};
}

void TierStack::abandon(SampleId id, const Flight& flight) {
  if (flight.shared) return shared_->abandon(id);
  arena_.abandon(id);
  homes_.lost(id);
}

std::optional<Started> TierStack::start_next(Origin origin, Time now) {
  std::deque<SampleId>& waiting = queues_[static_cast<std::size_t>(origin)];
  if (waiting.empty()) return std::nullopt;
  const SampleId id = waiting.front();
  Flight& flight = flights_.at(id);
  if (is_busy(flight)) return std::nullopt;
  if (flight.origin == Origin::kPeer && !peers_->has_room(flight.into.size()) && peers_->open() > 0)
    return std::nullopt;
  waiting.pop_front();
  start(id, flight, now);
  return Started{.id = id,
                 .length = flight.bytes(),
                 .origin = flight.origin,
                 .in_flight = in_flight(flight.origin) - 1,
                 .fill = flight.fill};
}

void TierStack::start(SampleId id, Flight& flight, Time now) {
  if (flight.origin == Origin::kPeer) {
    const auto host = home_at_(id);
    const PeerCrop crop = flight.part ? flight.part->crop : PeerCrop{};
    if (host && !peers_->rests() && peers_->ask(id, *host, flight.into.size(), now, crop)) {
      ++flying_[static_cast<std::size_t>(Origin::kPeer)];
      asked_ = true;
      return;
    }
    flight.origin = Origin::kSource;  // an agent that stands still keeps the room
    want_all(id, flight);
  }
  // It may have gone from the disk since.
  const bool started = flight.origin == Origin::kDisk && start_from_disk(id, flight, now);
  if (!started) {
    flight.origin = Origin::kSource;
    if (flight.part) {
      bottom_->start_parts(id, flight.into, flight.part->parts, now);
    } else {
      bottom_->start(id, flight.into, now);
    }
  }
  ++flying_[static_cast<std::size_t>(flight.origin)];
}

bool TierStack::start_from_disk(SampleId id, Flight& flight, Time now) {
  flight.beside.reset();
  if (const auto place = disk_ ? disk_->store().begin_read(id) : std::nullopt) {
    bottom_->start_from(place->fd, place->offset, id, flight.into, now);
    return true;
  }
  if (seat_ != nullptr) flight.beside = seat_->find_beside(id);
  if (!flight.beside) return false;
  bottom_->start_from(flight.beside->file->get(), flight.beside->place.offset, id, flight.into, now);
  return true;
}

bool TierStack::is_right(const SourceRead& read, const Flight& flight) {
  if (flight.beside) {
    if (read.status.ok() && hash_bytes(flight.into) == flight.beside->place.hash) return true;
    seat_->doubt(read.id, flight.beside->place);
    return false;
  }
  if (read.status.ok()) return disk_->store().end_read(read.id, flight.into);
  disk_->store().drop(read.id);
  return false;
}

bool TierStack::take_over(Flight& flight) {
  if (!flight.fill) return false;
  filling_[static_cast<std::size_t>(flight.asked)] -= flight.into.size();
  flight.fill = false;
  return true;
}

bool TierStack::land(const SourceRead& read, Flight& flight) {
  if (flight.origin != Origin::kDisk) return true;
  if (is_right(read, flight)) return true;
  flight.dropped = true;
  if (draining_) return true;
  flight.origin = Origin::kSource;
  start(read.id, flight, now());  // in the place of the read that ended
  return false;
}

bool TierStack::complete(SampleId id, Lease& lease, Time now) {
  if (is_busy({})) return false;
  const std::span<std::byte> into = arena_.writable(lease);
  Flight& flight = flights_[id] = {.into = into, .lease = std::move(lease)};
  start(id, flight, now);
  return true;
}

void TierStack::arrive(SourceRead& read, std::vector<Arrival>& arrivals) {
  Flight& flight = flights_.at(read.id);
  --flying_[static_cast<std::size_t>(flight.origin)];
  if (!land(read, flight)) return;
  const bool wrong = !read.status.ok() || (flight.dropped && flight.origin == Origin::kDisk);
  Arrival arrival{.id = read.id,
                  .status = std::move(read.status),
                  .length = flight.bytes(),
                  .part = flight.part,
                  .origin = flight.origin,
                  .asked = flight.asked,
                  .fill = flight.fill,
                  .dropped = flight.dropped,
                  .took = read.took,
                  .retries = read.retries};
  (void)take_over(flight);
  const Bytes length = flight.into.size();
  const Flight landed = std::move(flight);
  flights_.erase(read.id);
  if (landed.lease.valid()) {
    partial_.erase(read.id);
    arrival.lease = landed.lease.share();
  } else if (wrong) {
    abandon(read.id, landed);
  } else {
    arrival.lease = landed.shared ? shared_->commit(read.id, length) : arena_.commit(read.id, length);
    if (is_doubted(read.id)) disk_->store().tell_of(read.id);
    // The urgent range is for the next substitute, and never waits for a disk.
    if (wants_on_disk(read.id) && !arena_.is_urgent(read.id)) {
      disk_->offer(read.id, arrival.lease.share());
    }
  }
  arrivals.push_back(std::move(arrival));
}

// A part that nobody cut out: whatever comes is the sample.
void TierStack::want_all(SampleId id, Flight& flight) {
  if (flight.part) partial_.erase(id);
  flight.part.reset();
}

// What no other host gave is read from the source, before all that waits for it.
void TierStack::take_from_peers(std::vector<Arrival>& arrivals) {
  peers_->take(now(), [&](const PeerDesk::End& end) {
    Flight& flight = flights_.at(end.id);
    if (!end.is_cut || !end.bytes) want_all(end.id, flight);
    if (end.bytes) {
      std::ranges::copy(*end.bytes, flight.into.begin());
      if (end.is_cut) flight.part->came = end.bytes->size();
      SourceRead read{.id = end.id, .took = end.took};
      return arrive(read, arrivals);
    }
    --flying_[static_cast<std::size_t>(Origin::kPeer)];
    flight.origin = Origin::kSource;
    queues_[static_cast<std::size_t>(Origin::kSource)].push_front(end.id);
  });
}

void TierStack::wait(std::vector<Arrival>& arrivals, Time deadline) {
  reads_.clear();
  if (seat_ != nullptr && disk_ && (!disk_->takes_all() || !disk_->store().writable())) seat_->stop_taking();
  if (std::exchange(asked_, false)) on_asked_();
  bottom_->wait(reads_, peers_ == nullptr ? deadline : std::min(deadline, peers_->next_deadline()));
  for (SourceRead& read : reads_) arrive(read, arrivals);
  if (peers_ != nullptr) take_from_peers(arrivals);
}

void TierStack::drain() {
  bottom_->hurry(true);
  draining_ = true;
  for (std::deque<SampleId>& waiting : queues_) {
    for (const SampleId id : waiting) {
      abandon(id, flights_.at(id));
      (void)take_over(flights_.at(id));
      flights_.erase(id);
    }
    waiting.clear();
  }
  if (peers_ != nullptr) peers_->give_up();
  for (auto flight = flights_.begin(); flight != flights_.end();) {
    const bool asked = flight->second.origin == Origin::kPeer;
    if (asked) abandon(flight->first, flight->second);
    if (asked) (void)take_over(flight->second);
    flight = asked ? flights_.erase(flight) : std::next(flight);
  }
  flying_[static_cast<std::size_t>(Origin::kPeer)] = 0;
  std::vector<Arrival> dropped;
  while (in_flight() > 0) {
    wait(dropped, kNever);
    dropped.clear();
  }
  draining_ = false;
  bottom_->hurry(false);
}

}  // namespace foreload
