// One turn of the thread: give free slots to the next batches, ask for substitutes, ask for what comes next until
// transit or the look-ahead says stop, start as many reads as the pacer allows, then wait for arrivals or a wake-up.
//
// Samples are asked for, and so get their room, strictly in the order of need. So whatever transit holds is needed
// before the sample that waits for room, and will leave: nothing can starve, however large. A substitute is needed out
// of that order; the urgent range is its room when transit is full of later samples. What is read to fill the disk
// passes through transit too, but waits for nobody. Holds of echoed samples are the one thing in transit that no worker
// gives back: they are dropped when everything else has left and there is still no room.
#include "pipeline/fetcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "policy/replay.h"
#include "source/describe.h"

namespace foreload {
Fetcher::Fetcher(const FetcherParts& parts, const PacerOptions& pacing)
    : parts_(parts),
      pacer_(pacing),
      holds_(parts.stream.schedule().options().echo, parts.hold),
      watches_(parts.ring.slots()) {
  if (parts_.chain != nullptr) foresight_.emplace(*parts_.chain);
}

void Fetcher::run(std::uint64_t number) {
  yield_to_others();  // or waking it would take the core from the consumer that released a batch
  next_open_ = ask_number_ = fill_number_ = number;
  ask_index_ = fill_index_ = 0;
  parts_.tiers.restart(parts_.stream.moment(parts_.stream.batch(number), 0));
  record({.time = now(),
          .kind = EventKind::kPacing,
          .a = parts_.tiers.max_depth(),
          .b = parts_.stream.max_batch(),
          .c = std::uint64_t{pacer_.options().objects} << 32 | parts_.ring.slots()});
  while (!stopping_) {
    const Time current = now();
    parts_.ring.beat(current);
    reap(current, std::exchange(starving_, false));
    look_for_stuck(current);
    open_slots(current);
    look_for_hold_up(current);
    for (const FetchClass wanted : Pacer::order()) serve(wanted, current);
    for (std::size_t origin = 0; origin < kOrigins; ++origin) {
      flying_[origin] = parts_.tiers.in_flight(static_cast<Origin>(origin));
    }
    parts_.tiers.wait(arrivals_, next_turn(current));
    for (const Arrival& arrival : arrivals_) arrive(arrival, now());
    arrivals_.clear();  // its leases hold room that the next turn may need
  }
  parts_.tiers.drain();
  (void)holds_.drop();
  ahead_.clear();
  waiters_.clear();
  elsewhere_.clear();
  wanted_.clear();
  redos_.clear();
  pending_substitutes_.clear();
  pending_completions_.clear();
}

void Fetcher::serve(FetchClass wanted, Time now) {
  switch (wanted) {
    case FetchClass::kSubstitutes:
      ask_elsewhere(now);
      ask_completions(now);
      ask_wanted(now);
      return ask_substitutes(now);
    case FetchClass::kStream:
      if (!parts_.only_fill) ask_ahead(now);
      return start_reads(now);
    case FetchClass::kFill:
      return fill(now);
  }
}

void Fetcher::stop() {
  stopping_ = true;
  parts_.tiers.wake();
}

Fetcher::Ahead& Fetcher::ahead(std::uint64_t number) {
  const std::uint64_t first = ahead_.empty() ? number : ahead_.front().plan.number;
  while (first + ahead_.size() <= number) {
    Ahead next{.plan = parts_.stream.batch(first + ahead_.size())};
    next.works.resize(next.plan.count);
    next.arrived.resize(next.plan.count);
    look_over(next);
    ahead_.push_back(std::move(next));
  }
  return ahead_[number - first];
}

void Fetcher::open_slots(Time now) {
  while (redo_next(now)) {
  }
  while (redos_.empty() && parts_.stream.has(next_open_)) {
    Ahead& batch = ahead(next_open_);
    batch.slot = parts_.ring.free_slot();
    if (!batch.slot) return;
    prepare_slot(*batch.slot, batch.plan, now);
    pacer_.on_slot_opened(now);
    since_ = pacer_.pace().since.count();
    step_ = pacer_.pace().step.count();
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
  while (!stopping_ && !overdue_ && parts_.stream.has(ask_number_) &&
         ask_number_ < next_open_ + pacer_.lookahead_batches()) {
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
  const BatchPlan& plan = ahead(ask_number_).plan;
  const SampleId id = parts_.stream.sample(plan, ask_index_);
  const Waiter waiter{.number = ask_number_, .index = static_cast<std::uint32_t>(ask_index_)};
  if (auto error = refuse(id)) {
    settle(waiter, {.id = id, .error = std::move(error)}, now);
    return true;
  }
  const Bytes length = parts_.source.length(id);
  enter_block(plan);
  // Weighted draws may want one sample without end; its arrival goes on with this.
  const auto joined = waiters_.find(id);
  if (joined != waiters_.end() && joined->second.size() >= Arena::kMostLeases) return false;
  const Origin from = route(id, ask_number_, now);
  const auto part = part_of(id, from, {parts_.seed, plan.epoch, plan.position(ask_index_)}, now);
  const Moment moment = parts_.stream.moment(plan, ask_index_);
  Answer answer = request({.id = id, .from = from, .part = part, .moment = moment}, now);
  if (answer.kind != Ask::kBusy && answer.kind != Ask::kNoRoom) holds_.asked(id);
  Event event = event_of(EventKind::kHit, now, plan, waiter.index);
  event.a = id;
  event.b = length;
  switch (answer.kind) {
    case Ask::kHit:
      hold(id, answer.lease);
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
      ahead(ask_number_).flying[static_cast<std::size_t>(from)] += event.b;
      waiters_[id].push_back(waiter);
      return true;
    case Ask::kJoined:
      event.kind = EventKind::kJoined;
      record(event);
      if (answer.first) {
        ahead(ask_number_).flying[static_cast<std::size_t>(from)] += length;
      } else {
        account(waiter, {.memory = length});
      }
      waiters_[id].push_back(waiter);
      return true;
    case Ask::kElsewhere:
      elsewhere_.push_back({waiter, id, now});
      return true;
    default:
      return false;
  }
}

// Asks the tiers; when transit is full, once more after announcing it and dropping what is settled, so that nothing
// that is settled in between is missed.
Answer Fetcher::request(const Request& wanted, Time now) {
  Answer answer = parts_.tiers.request(wanted, now);
  if (answer.kind != Ask::kNoRoom) return answer;
  starving_ = true;
  parts_.ring.call_when_settled();
  reap(now, true);
  answer = parts_.tiers.request(wanted, now);
  if (answer.kind != Ask::kNoRoom || at_work_ > 0 || !waiters_.empty() || !holds_.drop()) return answer;
  return parts_.tiers.request(wanted, now);
}

void Fetcher::enter_block(const BatchPlan& plan) {
  const Schedule& schedule = parts_.stream.schedule();
  if (schedule.options().echo == 1) return;
  const Position position = parts_.stream.assignment().source_position(plan.position(ask_index_));
  holds_.enter(plan.epoch, schedule.block_of(position));
}

void Fetcher::hold(SampleId id, const Lease& lease) {
  if (holds_.wants(id, parts_.source.length(id)) && parts_.tiers.is_passing(id)) {
    holds_.keep(id, lease.share());
  }
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

// A substitute may be refused at once, which asks for the next one: that comes in the next turn, at once.
void Fetcher::ask_substitutes(Time now) {
  substitute_added_ = false;
  std::vector<Waiter> asked = std::exchange(pending_substitutes_, {});
  std::erase_if(asked, [&](const Waiter& waiter) { return ask_substitute(waiter, now); });
  pending_substitutes_.insert(pending_substitutes_.begin(), asked.begin(), asked.end());
}

bool Fetcher::ask_substitute(const Waiter& waiter, Time now) {
  const BatchPlan& plan = watches_[*waiter.slot].plan;
  const SampleId id = parts_.stream.schedule().substitute(plan.epoch, plan.position(waiter.index), waiter.attempt);
  if (auto error = refuse(id)) {
    settle(waiter, {.id = id, .attempt = waiter.attempt, .error = std::move(error)}, now);
    return true;
  }
  const Bytes length = parts_.source.length(id);
  const Origin from = parts_.tiers.nearest(id);
  Answer answer = request({.id = id, .from = from, .urgent = true}, now);
  if (answer.kind == Ask::kBusy || answer.kind == Ask::kNoRoom) return false;
  if (answer.kind == Ask::kElsewhere) {
    elsewhere_.push_back({waiter, id, now});
    return true;
  }
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
  if (!arrival.status.ok()) parts_.filling.failed(arrival.status.error());
  // Whoever began the flight; the others found the bytes on their way. What nobody needed yet is counted where the
  // stream stands.
  const auto from = [&](Origin origin) { return arrival.origin == origin ? arrival.came() : Bytes{0}; };
  const OriginBytes bytes{.disk = from(Origin::kDisk),
                          .peer = from(Origin::kPeer),
                          .source = from(Origin::kSource),
                          .filled = waiting.empty() ? arrival.length : 0};
  if (waiting.empty()) {
    if (parts_.stream.has(ask_number_)) account({.number = ask_number_}, bytes);
    return;
  }
  const Waiter& first = waiting.mapped().front();
  account(first, bytes);
  if (!first.slot) {
    Bytes& flying = ahead(first.number).flying[static_cast<std::size_t>(arrival.asked)];
    flying -= std::min(flying, arrival.length);
  }
  for (const Waiter& waiter : waiting.mapped()) {
    Work work{.id = arrival.id, .attempt = waiter.attempt, .part = arrival.part};
    if (arrival.status.ok()) {
      work.lease = arrival.lease.share();
    } else {
      work.error = arrival.status.error();
    }
    settle(waiter, std::move(work), now);
  }
  if (arrival.status.ok()) hold(arrival.id, arrival.lease);
}

void Fetcher::account(const Waiter& waiter, const OriginBytes& bytes) {
  if (waiter.slot) return parts_.ring.add_bytes(*waiter.slot, bytes);
  Ahead& batch = ahead(waiter.number);
  if (batch.slot) return parts_.ring.add_bytes(*batch.slot, bytes);
  batch.bytes += bytes;
}

Event Fetcher::event_of(EventKind kind, Time now, const BatchPlan& plan, std::uint64_t index) {
  const Position position = plan.count == 0 ? plan.first : plan.position(index);
  return {.time = now, .kind = kind, .epoch = static_cast<std::uint32_t>(plan.epoch), .position = position};
}

}  // namespace foreload
