// Between the tiers and the ring: bytes go to the workers, and what the workers made of them comes back. A lease is
// dropped when its sample is settled: seen when the slot is complete or free, when a sample of it is bad, or when room
// is short. Bad samples end the run or are replaced; whatever else is wrong always ends it.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "pipeline/fetcher.h"
#include "source/describe.h"

namespace foreload {
namespace {

constexpr Duration kLookAgain = std::chrono::milliseconds(1);       // at what other processes are reading
constexpr Duration kLookForTime = std::chrono::milliseconds(5);     // to fill
constexpr Duration kLookForStuck = std::chrono::milliseconds(250);  // at what they are preparing
constexpr Duration kLookForHoldUp = std::chrono::milliseconds(50);  // at who waits for whom
constexpr Duration kStuck = std::chrono::seconds(2);                // hardly a sample takes so long
constexpr unsigned kMostPatience = 10;                              // doublings of it

}  // namespace

// Bytes, or the reason why there are none, have come for one sample of one batch.
void Fetcher::settle(const Waiter& waiter, Work work, Time now) {
  ++at_work_;
  if (waiter.slot) return deliver({*waiter.slot, waiter.index}, std::move(work), now);
  Ahead& batch = ahead(waiter.number);
  ++batch.delivered;
  if (batch.slot) return deliver({*batch.slot, waiter.index}, std::move(work), now);
  batch.arrived[waiter.index] = true;
  batch.works[waiter.index] = std::move(work);
}

void Fetcher::deliver(RingItem item, Work work, Time now) {
  if (work.error) {
    const Error error = *work.error;
    parts_.works.at(item).attempt = work.attempt;
    return judge(item, std::move(work), error, now);
  }
  const std::span<const std::byte> bytes = work.lease.bytes();
  const TierStack::Place place = parts_.tiers.place_of(bytes);
  RingWork ready{.id = work.id,
                 .label = parts_.source.label(work.id),
                 .memory = place.memory,
                 .offset = place.offset,
                 .length = bytes.size()};
  auto rows = parts_.source.rows(work.id);
  if (rows.size() > parts_.ring.most_rows()) rows = {};
  if (work.part && work.part->is_cut()) {
    ready.length = work.part->came;
    ready.crop = work.part->crop;
    rows = {};
  } else if (work.part) {
    ready.first_row = work.part->first_row;
    ready.end_row = work.part->end_row;
  }
  parts_.works.at(item) = std::move(work);
  parts_.ring.mark_ready(item, ready, rows, now);
}

void Fetcher::reap(Time now, bool all) {
  for (std::uint32_t slot = 0; slot < watches_.size(); ++slot) {
    const Watch& watch = watches_[slot];
    if (all || parts_.ring.rejected(slot) != watch.rejected || parts_.ring.settled(slot) >= watch.plan.count)
      reap(slot, now);
  }
}

// `anyway`: also if nothing was counted; whoever settled a sample may have died before it counted it.
void Fetcher::reap(std::uint32_t slot, Time now, bool anyway) {
  Watch& watch = watches_[slot];
  if (watch.retired) return;
  watch.rejected = parts_.ring.rejected(slot);
  const std::uint32_t settled = parts_.ring.settled(slot);
  if (settled == watch.settled && !anyway) return;
  watch.settled = settled;
  for (std::uint32_t i = 0; i < watch.plan.count; ++i) {
    const RingItem item{slot, i};
    Work& kept = parts_.works.at(item);
    const Settled what = kept.lease.valid() ? parts_.ring.settled(item) : Settled::kNotYet;
    if (what == Settled::kNotYet) continue;
    Work work = std::move(kept);
    if (what == Settled::kBad) {
      judge(item, std::move(work), parts_.ring.reason(item), now);
      continue;
    }
    const Prepared prepared = parts_.ring.prepared(item);
    parts_.dimensions.note(work.id, prepared.dimensions);
    if (!prepared.damaged && !work.part) parts_.rewriter.offer(work.id, work.lease.bytes());
    --at_work_;
  }
}

// What the slot had before is settled, or was retired and nobody reads its bytes any more.
void Fetcher::prepare_slot(std::uint32_t slot, const BatchPlan& plan, Time now) {
  reap(slot, now);
  for (std::uint32_t i = 0; i < watches_[slot].plan.count; ++i) {
    Work& left = parts_.works.at({slot, i});
    if (left.lease.valid()) --at_work_;
    left = Work{};
  }
  watches_[slot] = {.plan = plan};
  parts_.ring.open(slot, plan);
}

// Members that died, or were stopped, between any two steps: what they left is found in the words of the samples.
void Fetcher::look_for_stuck(Time now) {
  if (!parts_.shared || now - looked_ < kLookForStuck) return;
  looked_ = now;
  parts_.ring.take_back();
  for (std::uint32_t slot = 0; slot < watches_.size(); ++slot) {
    reap(slot, now, true);
    const Duration patience = kStuck * (1 << std::min(watches_[slot].turn, kMostPatience));
    if (!watches_[slot].retired && parts_.ring.is_stuck(slot, now, patience) && parts_.ring.retire(slot))
      do_again(slot);
  }
}

// Several jobs read this stream, and one of them may keep the others from going on.
void Fetcher::look_for_hold_up(Time now) {
  if (!parts_.shared) return;
  std::vector<ReaderAt> readers = parts_.ring.readers();
  // Others are to begin later.
  std::erase_if(readers, [&](const ReaderAt& reader) { return reader.next > next_open_ + parts_.ring.slots(); });
  has_company_ = readers.size() > 1;
  const std::uint64_t next = redos_.empty() ? next_open_ : redos_.front().plan.number;
  const bool full = has_company_ && parts_.stream.has(next) && !parts_.ring.free_slot();
  const auto behind = hold_up_.look(readers, next, full, now);
  if (!behind) return;
  // The others leave together when it is the one that this process feeds for anyway.
  if (*behind == Ring::kOwnReader) return parts_.ring.feed_only_own();
  parts_.ring.dismiss(*behind);
}

void Fetcher::do_again(std::uint32_t slot) {
  Watch& watch = watches_[slot];
  Redo redo{.plan = watch.plan, .turn = watch.turn + 1};
  for (std::uint32_t i = 0; i < redo.plan.count; ++i) {
    const Work& work = parts_.works.at({slot, i});
    redo.attempts.push_back(work.attempt);
    Work& part = redo.parts.emplace_back();
    if (!work.part || !work.lease.valid()) continue;
    part = {.id = work.id, .attempt = work.attempt, .lease = work.lease.share(), .part = work.part};
  }
  watch.retired = true;
  const auto later = std::ranges::find_if(redos_, [&](const Redo& r) { return r.plan.number > redo.plan.number; });
  redos_.insert(later, std::move(redo));
}

// False: there is none, or no slot for it. Later batches that are ready give way: the learner needs this one first.
bool Fetcher::redo_next(Time now) {
  if (redos_.empty()) return false;
  auto slot = parts_.ring.free_slot();
  if (!slot) {
    slot = parts_.ring.recall_after(redos_.front().plan.number);
    if (!slot) return false;
    reap(*slot, now);
    do_again(*slot);
  }
  Redo redo = std::move(redos_.front());
  redos_.pop_front();
  prepare_slot(*slot, redo.plan, now);
  watches_[*slot].turn = redo.turn;
  for (std::uint32_t i = 0; i < redo.plan.count; ++i) {
    const unsigned attempt = redo.attempts[i];
    const SampleId id = attempt == 0
                            ? parts_.stream.sample(redo.plan, i)
                            : parts_.stream.schedule().substitute(redo.plan.epoch, redo.plan.position(i), attempt);
    const Waiter waiter{.number = redo.plan.number, .index = i, .attempt = attempt, .slot = *slot};
    if (redo.parts[i].lease.valid()) {
      settle(waiter, std::move(redo.parts[i]), now);
    } else {
      elsewhere_.push_back({waiter, id, now});
    }
  }
  return true;
}

Time Fetcher::next_turn(Time now) const {
  if (fill_more_ || substitute_added_) return Time{0};
  if (!elsewhere_.empty() || !wanted_.empty()) return now + kLookAgain;
  if (fill_later_) return now + kLookForTime;
  if (has_company_) return now + kLookForHoldUp;
  return parts_.shared ? now + kLookForStuck : kNever;
}

void Fetcher::judge(RingItem item, Work work, const Error& error, Time now) {
  --at_work_;
  if (work.part && error.code == Code::kBadSample) {
    // That says nothing about the whole sample.
    parts_.ring.wait_again(item, false);
    pending_completions_.push_back({item, std::move(work)});
    return;
  }
  const bool is_named = error.code != Code::kBadSample && error.code != Code::kNoMemory;  // the source tier names it
  const std::string name = is_named ? "" : describe_sample(parts_.source, work.id) + ": ";
  const Error named{error.code, name + error.message};
  if (error.code != Code::kBadSample) return fail(item, named, now);
  if (parts_.on_error == OnError::kFail) {
    return fail(item,
                {named.code, named.message + ". Remove it, or let another sample take its place (on-error: replace)"},
                now);
  }
  const BatchPlan& plan = watches_[item.slot].plan;
  const Position position = plan.position(item.index);
  if (!parts_.quarantine.add({plan.epoch, position, work.id, parts_.source.key(work.id), error.message})) {
    return fail(item,
                {error.code, fmt::format("{} samples were replaced already, which is the limit; the next bad one is {}",
                                         parts_.quarantine.cap(), named.message)},
                now);
  }
  Event event = event_of(EventKind::kReplaced, now, plan, item.index);
  event.a = work.id;
  event.c = work.attempt + 1;
  record(event);
  parts_.ring.wait_again(item, true);
  substitute_added_ = true;
  pending_substitutes_.push_back({.index = item.index, .attempt = work.attempt + 1, .slot = item.slot});
}

// The batch is delivered as an error: what it holds does not matter, so there is no batch stage.
void Fetcher::fail(RingItem item, const Error& error, Time now) {
  if (!parts_.ring.fail(item, error)) return;
  Event event = event_of(EventKind::kPublished, now, watches_[item.slot].plan, 0);
  event.a = watches_[item.slot].plan.step;
  event.b = item.slot;
  parts_.ring.publish(item.slot);
  record(event);
}

}  // namespace foreload
