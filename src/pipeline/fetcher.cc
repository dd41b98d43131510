// One turn of the thread: give free slots to the next batches, ask for substitutes, ask for what comes next until
// transit or the look-ahead says stop, start as many reads as the pacer allows, then wait for arrivals or a wake-up.
//
// Samples are asked for, and so get their room, strictly in the order of need. So whatever transit holds is needed
// before the sample that waits for room, and will leave: nothing can starve, however large. A substitute is needed out
// of that order; the urgent range is its room when transit is full of later samples. What is read to fill the disk
// passes through transit too, but waits for nobody.
#include "pipeline/fetcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "policy/replay.h"
#include "source/describe.h"

namespace foreload {

namespace {

constexpr int kConsideredAtOnce = 512;  // positions, between two looks at what arrived

}  // namespace

Fetcher::Fetcher(const FetcherParts& parts, const PacerOptions& pacing) : parts_(parts), pacer_(pacing) {
  if (parts_.chain != nullptr) foresight_.emplace(*parts_.chain);
}

void Fetcher::run(std::uint64_t number) {
  yield_to_others();  // or waking it would take the core from the consumer that released a batch
  next_open_ = ask_number_ = fill_number_ = number;
  ask_index_ = fill_index_ = 0;
  record({.time = now(),
          .kind = EventKind::kPacing,
          .a = parts_.tiers.max_depth(),
          .b = parts_.stream.assignment().max_share(),
          .c = parts_.ring.slots()});
  while (!stopping_) {
    const Time current = now();
    open_slots(current);
    for (const FetchClass wanted : Pacer::order()) serve(wanted, current);
    for (const Origin origin : {Origin::kSource, Origin::kDisk}) {
      flying_[static_cast<std::size_t>(origin)] = parts_.tiers.in_flight(origin);
    }
    parts_.tiers.wait(arrivals_, fill_more_ ? Time{0} : kNever);
    for (const Arrival& arrival : arrivals_) arrive(arrival, now());
    arrivals_.clear();  // its leases hold room that the next turn may need
  }
  parts_.tiers.drain();
  ahead_.clear();
  waiters_.clear();
}

void Fetcher::serve(FetchClass wanted, Time now) {
  switch (wanted) {
    case FetchClass::kSubstitutes:
      ask_completions(now);
      return ask_substitutes(now);
    case FetchClass::kStream:
      ask_ahead(now);
      return start_reads(now);
    case FetchClass::kFill:
      return fill(now);
  }
}

void Fetcher::start_reads(Time now) {
  start_reads_of(Origin::kDisk, now);
  start_reads_of(Origin::kSource, now);
}

void Fetcher::start_reads_of(Origin origin, Time now) {
  while (pacer_.may_start(origin, parts_.tiers.in_flight(origin))) {
    const auto started = parts_.tiers.start_next(origin, now);
    if (!started) return;
    record({.time = now,
            .kind = EventKind::kReadStarted,
            .a = started->id,
            .b = started->length,
            .c = ReadFields{started->origin, origin, started->fill, started->in_flight}.pack()});
  }
}

// Homes that stand empty are filled in the order in which they will be needed, at most an epoch ahead.
void Fetcher::fill(Time now) {
  fill_more_ = false;
  if (!parts_.tiers.keeps_anything()) return;
  if (fill_number_ < ask_number_) {
    fill_number_ = ask_number_;
    fill_index_ = 0;
  }
  const std::uint64_t end = ask_number_ + parts_.stream.assignment().batches_per_epoch();
  for (int i = 0; i < kConsideredAtOnce; ++i) {
    if (fill_number_ >= end || !parts_.stream.has(fill_number_)) return;
    if (fill_index_ == parts_.stream.batch(fill_number_).count) {
      ++fill_number_;
      fill_index_ = 0;
    } else if (fill_next(now)) {
      ++fill_index_;
    } else {
      return;
    }
  }
  fill_more_ = true;
}

// False: not now.
bool Fetcher::fill_next(Time now) {
  const SampleId id = parts_.stream.sample(parts_.stream.batch(fill_number_), fill_index_);
  if (refuse(id) || !parts_.tiers.lacks(id)) return true;
  const Origin from = parts_.tiers.on_disk(id) ? Origin::kDisk : Origin::kSource;
  if (!pacer_.may_fill(from, parts_.tiers.in_flight(from), parts_.tiers.waiting(from))) return false;
  if (parts_.tiers.request({.id = id, .from = from, .fill = true}, now).kind != Ask::kQueued) return false;
  const Bytes length = parts_.source.length(id);
  pacer_.on_asked(from, length);
  record({.time = now,
          .kind = EventKind::kAsked,
          .a = id,
          .b = length,
          .c = std::uint64_t{1} << 8 | static_cast<std::uint64_t>(from)});
  start_reads_of(from, now);
  return true;
}

void Fetcher::stop() {
  stopping_ = true;
  parts_.tiers.wake();
}

void Fetcher::lease_dropped() {
  if (starving_.exchange(false)) parts_.tiers.wake();
}

void Fetcher::substitute(RingItem item, unsigned attempt) {
  {
    MutexLock lock(mutex_);
    substitutes_.push_back({.index = item.index, .attempt = attempt, .slot = item.slot});
  }
  parts_.tiers.wake();
}

void Fetcher::complete(RingItem item, Work work) {
  {
    MutexLock lock(mutex_);
    incomplete_.push_back({item, std::move(work)});
  }
  parts_.tiers.wake();
}

void Fetcher::ask_completions(Time now) {
  {
    MutexLock lock(mutex_);
    for (Incomplete& sample : incomplete_) pending_completions_.push_back(std::move(sample));
    incomplete_.clear();
  }
  std::erase_if(pending_completions_, [&](Incomplete& sample) {
    const SampleId id = sample.work.id;
    if (!parts_.tiers.complete(id, sample.work.lease, now)) return false;
    const Bytes length = parts_.source.length(id);
    pacer_.on_asked(Origin::kSource, length);
    record({.time = now, .kind = EventKind::kAsked, .a = id, .b = length});
    waiters_[id].push_back({.index = sample.item.index, .attempt = sample.work.attempt, .slot = sample.item.slot});
    return true;
  });
}

// What is enough of a crop-addressable sample that is not kept, where storage is so slow that it pays.
std::optional<PartialRead> Fetcher::part_of(SampleId id, const BatchPlan& plan, std::uint64_t index, Time now) {
  if (!foresight_ || !pacer_.parts_may_pay() || parts_.tiers.keeps(id)) return std::nullopt;
  const auto offsets = parts_.source.rows(id);
  const auto size = parts_.source.dimensions(id);
  if (offsets.empty() || !size) return std::nullopt;
  const auto wanted = foresight_->rows(*size, {parts_.seed, plan.epoch, plan.first + index});
  const auto rows = wanted ? rows_around(offsets, *size, *wanted) : std::nullopt;
  const Bytes length = parts_.source.length(id);
  if (!rows || !rows->is_partial() || offsets.back() + Bytes{2} > length) return std::nullopt;
  // The marker behind the last row is looked at, too.
  const Bytes end = std::min(Bytes{offsets[rows->end]} + 2, length);
  const PartialRead part{
      .parts = {SamplePart{0, offsets[0]}, SamplePart{offsets[rows->first], end - offsets[rows->first]}},
      .first_row = rows->first,
      .end_row = rows->end};
  const bool pays = pacer_.part_pays(length, part.bytes());
  record({.time = now, .kind = EventKind::kPart, .a = length, .b = part.bytes(), .c = pays ? 1u : 0u});
  return pays ? std::optional<PartialRead>(part) : std::nullopt;
}

Fetcher::Ahead& Fetcher::ahead(std::uint64_t number) {
  const std::uint64_t first = ahead_.empty() ? number : ahead_.front().plan.number;
  while (first + ahead_.size() <= number) {
    Ahead next{.plan = parts_.stream.batch(first + ahead_.size())};
    next.works.resize(next.plan.count);
    next.arrived.resize(next.plan.count);
    ahead_.push_back(std::move(next));
  }
  return ahead_[number - first];
}

void Fetcher::open_slots(Time now) {
  while (parts_.stream.has(next_open_)) {
    Ahead& batch = ahead(next_open_);
    batch.slot = parts_.ring.open(batch.plan);
    if (!batch.slot) return;
    pacer_.on_slot_opened(now);
    Event opened = event_of(EventKind::kSlotOpened, now, batch.plan, 0);
    opened.a = batch.plan.step;
    opened.b = *batch.slot;
    opened.c = batch.plan.count;
    record(opened);
    parts_.ring.add_bytes(*batch.slot, batch.bytes);
    for (std::uint32_t i = 0; i < batch.plan.count; ++i) {
      if (batch.arrived[i]) deliver({*batch.slot, i}, std::move(batch.works[i]), now);
    }
    std::vector<Work>().swap(batch.works);
    std::vector<bool>().swap(batch.arrived);
    ++next_open_;
  }
}

void Fetcher::ask_ahead(Time now) {
  while (!stopping_ && parts_.stream.has(ask_number_) && ask_number_ < next_open_ + pacer_.lookahead_batches()) {
    if (ask_index_ < ahead(ask_number_).plan.count) {
      if (!ask_next(now)) return;
      ++ask_index_;
      continue;
    }
    ++ask_number_;
    ask_index_ = 0;
    // What is behind both cursors lives on in ring and waiters.
    while (!ahead_.empty() && ahead_.front().plan.number < std::min(ask_number_, next_open_) &&
           ahead_.front().delivered == ahead_.front().plan.count) {
      ahead_.pop_front();
    }
  }
}

bool Fetcher::ask_next(Time now) {
  const BatchPlan plan = ahead(ask_number_).plan;
  const SampleId id = parts_.stream.sample(plan, ask_index_);
  const Waiter waiter{.number = ask_number_, .index = static_cast<std::uint32_t>(ask_index_)};
  if (auto error = refuse(id)) {
    settle(waiter, {.id = id, .error = std::move(error)}, now);
    return true;
  }
  const Bytes length = parts_.source.length(id);
  const Origin from = route(id, ask_number_, now);
  const auto part = from == Origin::kSource ? part_of(id, plan, ask_index_, now) : std::nullopt;
  Answer answer = request({.id = id, .from = from, .part = part}, now);
  Event event = event_of(EventKind::kHit, now, plan, waiter.index);
  event.a = id;
  event.b = length;
  switch (answer.kind) {
    case Ask::kHit:
      record(event);
      account(waiter, {.memory = length});
      settle(waiter, {.id = id, .lease = std::move(answer.lease)}, now);
      return true;
    case Ask::kQueued:
      event.kind = EventKind::kAsked;
      event.b = part ? part->bytes() : length;
      event.c = static_cast<std::uint64_t>(from);
      record(event);
      pacer_.on_asked(from, event.b);
      waiters_[id].push_back(waiter);
      return true;
    case Ask::kJoined:
      event.kind = EventKind::kJoined;
      record(event);
      if (!answer.first) account(waiter, {.memory = length});
      waiters_[id].push_back(waiter);
      return true;
    default:
      return false;
  }
}

// Where the sample would be read.
Origin Fetcher::route(SampleId id, std::uint64_t number, Time now) {
  if (!parts_.tiers.on_disk(id)) return Origin::kSource;
  const std::uint64_t left = number + parts_.ring.slots() - std::min(next_open_, number + parts_.ring.slots());
  const Bytes length = parts_.source.length(id);
  const Origin chosen = pacer_.route(length, left);
  record({.time = now,
          .kind = EventKind::kRouted,
          .a = id,
          .b = length,
          .c = left << 8 | static_cast<std::uint64_t>(chosen)});
  return chosen;
}

// Asks the tiers; when transit is full, once more after announcing it, so that a lease dropped in between is not
// missed.
Answer Fetcher::request(const Request& wanted, Time now) {
  Answer answer = parts_.tiers.request(wanted, now);
  if (answer.kind != Ask::kNoRoom) return answer;
  starving_ = true;
  return parts_.tiers.request(wanted, now);
}

Bytes Fetcher::bytes_ahead(const Pacer& pacer, std::uint64_t batch) {
  return (pacer.lookahead_batches() + 1) * (batch * (sizeof(Work) + 1) + sizeof(Ahead));
}

// Why a sample can not be asked for at all.
std::optional<Error> Fetcher::refuse(SampleId id) const {
  const Bytes length = parts_.source.length(id);
  if (length == 0) return Error{Code::kBadSample, "the sample is empty"};
  if (length > parts_.sample_limit) {
    return Error{Code::kBadSample, fmt::format("the sample has {}, more than the limit of {}", format_bytes(length),
                                               format_bytes(parts_.sample_limit))};
  }
  if (length <= parts_.longest_sample) return std::nullopt;
  // Never replaced: what is delivered must not depend on the memory that somebody has.
  return Error{Code::kNoMemory,
               fmt::format("the sample has {}, and the memory budget has room for {}; raise the budget or "
                           "remove the sample",
                           format_bytes(length), format_bytes(parts_.longest_sample))};
}

void Fetcher::ask_substitutes(Time now) {
  {
    MutexLock lock(mutex_);
    pending_substitutes_.insert(pending_substitutes_.end(), substitutes_.begin(), substitutes_.end());
    substitutes_.clear();
  }
  std::erase_if(pending_substitutes_, [&](const Waiter& waiter) { return ask_substitute(waiter, now); });
}

bool Fetcher::ask_substitute(const Waiter& waiter, Time now) {
  const BatchPlan plan = parts_.ring.plan_of(*waiter.slot);
  const SampleId id = parts_.stream.schedule().substitute(plan.epoch, plan.first + waiter.index, waiter.attempt);
  if (auto error = refuse(id)) {
    settle(waiter, {.id = id, .attempt = waiter.attempt, .error = std::move(error)}, now);
    return true;
  }
  const Bytes length = parts_.source.length(id);
  const Origin from = parts_.tiers.on_disk(id) ? Origin::kDisk : Origin::kSource;
  Answer answer = request({.id = id, .from = from, .urgent = true}, now);
  if (answer.kind == Ask::kBusy || answer.kind == Ask::kNoRoom) return false;
  if (answer.kind == Ask::kQueued) {
    pacer_.on_asked(from, length);
    record({.time = now, .kind = EventKind::kAsked, .a = id, .b = length, .c = static_cast<std::uint64_t>(from)});
  } else if (!answer.first) {
    account(waiter, {.memory = length});
  }
  if (answer.kind == Ask::kHit) {
    settle(waiter, {.id = id, .attempt = waiter.attempt, .lease = std::move(answer.lease)}, now);
  } else {
    waiters_[id].push_back(waiter);
  }
  return true;
}

void Fetcher::arrive(const Arrival& arrival, Time now) {
  auto waiting = waiters_.extract(arrival.id);
  record_read(arrival, now);
  // Whoever began the flight; the others found the bytes on their way. What nobody needed yet is counted where the
  // stream stands.
  const bool from_disk = arrival.origin == Origin::kDisk;
  const OriginBytes bytes{.disk = from_disk ? arrival.length : 0, .source = from_disk ? 0 : arrival.length};
  if (waiting.empty()) {
    if (parts_.stream.has(ask_number_)) account({.number = ask_number_}, bytes);
    return;
  }
  account(waiting.mapped().front(), bytes);
  for (const Waiter& waiter : waiting.mapped()) {
    Work work{.id = arrival.id, .attempt = waiter.attempt, .part = arrival.part};
    if (arrival.status.ok()) {
      work.lease = parts_.tiers.share(arrival.lease);
    } else {
      work.error = arrival.status.error();
    }
    settle(waiter, std::move(work), now);
  }
}

// Tells the pacer, and the record what it made of it.
void Fetcher::record_read(const Arrival& arrival, Time now) {
  // Many may end at once: what counts is how many there were while this thread waited.
  const unsigned flying = flying_[static_cast<std::size_t>(arrival.origin)];
  const ReadEnd read{.origin = arrival.origin,
                     .asked = arrival.asked,
                     .bytes = arrival.length,
                     .took = arrival.took,
                     .in_flight = flying - std::min(flying, 1u)};
  const bool changed = pacer_.on_read_done(now, read);
  if (parts_.record == nullptr) return;
  record({.time = now,
          .kind = EventKind::kReadDone,
          .position = ReadFields{arrival.origin, arrival.asked, arrival.fill, read.in_flight}.pack(),
          .a = arrival.id,
          .b = arrival.length,
          .c = static_cast<std::uint64_t>(arrival.took.count())});
  if (arrival.retries > 0) {
    record({.time = now, .kind = EventKind::kReadRetried, .a = arrival.id, .b = arrival.retries});
  }
  if (arrival.dropped) {
    record({.time = now, .kind = EventKind::kDiskDropped, .a = arrival.id, .b = arrival.length});
  }
  if (changed) {
    const auto rate = static_cast<std::uint64_t>(pacer_.bytes_per_second(arrival.origin));
    record({.time = now,
            .kind = EventKind::kDepth,
            .a = pacer_.depth(arrival.origin),
            .b = rate,
            .c = static_cast<std::uint64_t>(arrival.origin)});
  }
}

void Fetcher::account(const Waiter& waiter, const OriginBytes& bytes) {
  if (waiter.slot) return parts_.ring.add_bytes(*waiter.slot, bytes);
  Ahead& batch = ahead(waiter.number);
  if (batch.slot) return parts_.ring.add_bytes(*batch.slot, bytes);
  batch.bytes += bytes;
}

// Bytes, or the reason why there are none, have come for one sample of one batch.
void Fetcher::settle(const Waiter& waiter, Work work, Time now) {
  if (waiter.slot) return deliver({*waiter.slot, waiter.index}, std::move(work), now);
  Ahead& batch = ahead(waiter.number);
  ++batch.delivered;
  if (batch.slot) return deliver({*batch.slot, waiter.index}, std::move(work), now);
  batch.arrived[waiter.index] = true;
  batch.works[waiter.index] = std::move(work);
}

void Fetcher::deliver(RingItem item, Work work, Time now) {
  parts_.works.at(item) = std::move(work);
  parts_.ring.mark_ready(item, now);
}

Event Fetcher::event_of(EventKind kind, Time now, const BatchPlan& plan, std::uint64_t index) {
  return {.time = now, .kind = kind, .epoch = static_cast<std::uint32_t>(plan.epoch), .position = plan.first + index};
}

}  // namespace foreload
