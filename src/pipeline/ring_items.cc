// The samples of a slot. Their words are the truth: `ready` and `finished` only say when it is worth looking at them,
// so that a member may die or be stopped between any two steps. A worker claims whatever ready sample it finds; `ready`
// is raised before a sample is ready and lowered after it was claimed, so it is never too low while all live. Whoever
// finishes the last sample must publish the slot. A slot that is all done and that nobody completes is stuck, like one
// whose worker does not come back. Signals are counters that only grow; a sleeper passes the value it saw before it
// looked, so no wake-up is lost.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "base/futex.h"
#include "pipeline/ring.h"
#include "pipeline/ring_layout.h"
#include "policy/prep_order.h"

namespace foreload {

void WorkSignal::raise() {
  count.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) > 0) futex_wake_one(count);
}

void Ring::mark_ready(RingItem what, const RingWork& work, std::span<const std::uint32_t> rows, Time now) {
  FORELOAD_CHECK(rows.size() <= most_rows(), "the feeder leaves out what does not fit");
  Slot& of = slot(what.slot);
  Item& ready = item(what);
  ready.work = work;
  ready.work.rows = static_cast<std::uint32_t>(rows.size());
  if (!rows.empty()) {
    auto* offsets = reinterpret_cast<std::uint32_t*>(column(what.slot, columns_->rows)) + what.index * kMostRows;
    std::ranges::copy(rows, offsets);
  }
  reinterpret_cast<SampleId*>(column(what.slot, columns_->ids))[what.index] = work.id;
  reinterpret_cast<std::int64_t*>(column(what.slot, columns_->labels))[what.index] = work.label;
  ready.claimed_at.store(now.count(), std::memory_order_relaxed);
  of.ready.fetch_add(1, std::memory_order_release);
  ready.word.store(word(kReady, life_of(of.state.load(std::memory_order_relaxed))), std::memory_order_release);
  if (of.waiting.fetch_sub(1, std::memory_order_acq_rel) == 1) of.bytes_complete = now.count();
  signal_->raise();
}

std::optional<std::uint64_t> Ring::soonest() const {
  std::optional<std::uint64_t> found;
  for (std::uint32_t i = 0; i < options_.slots; ++i) {
    const Slot& of = slot(i);
    if (phase_of(of.state) != kOpen || of.ready.load(std::memory_order_acquire) == 0) continue;
    const std::uint64_t number = of.number.load(std::memory_order_relaxed);
    if (!found || number < *found) found = number;
  }
  return found;
}

std::optional<RingItem> Ring::claim() {
  std::array<PrepCandidate, kMostSlots> candidates;
  for (std::uint32_t i = 0; i < options_.slots; ++i) {
    const Slot& of = slot(i);
    const bool open = phase_of(of.state) == kOpen;
    candidates[i] = {i, of.number.load(std::memory_order_relaxed), open ? of.ready.load(std::memory_order_acquire) : 0};
  }
  while (const auto chosen = soonest_needed({candidates.data(), options_.slots})) {
    if (const auto item = claim_of(*chosen)) return item;
    candidates[*chosen].ready = 0;  // others were quicker, or it was counted and not taken by somebody who died
  }
  return std::nullopt;
}

std::optional<RingItem> Ring::claim_of(std::uint32_t index) {
  Slot& of = slot(index);
  const std::uint64_t state = of.state.load(std::memory_order_acquire);
  if (ClaimWord::unpack(state).phase != kOpen) return std::nullopt;
  const std::uint64_t ready = word(kReady, life_of(state));
  const std::uint64_t mine = word(kClaimed, life_of(state), self_);
  const std::uint64_t count = count_of(index);
  const std::uint64_t from = of.search_from.load(std::memory_order_relaxed);
  for (std::uint64_t turn = 0; turn < count; ++turn) {
    const auto i = static_cast<std::uint32_t>((from + turn) % count);
    Item& found = item({index, i});
    std::uint64_t expected = found.word.load(std::memory_order_relaxed);
    if (expected != ready || !found.word.compare_exchange_strong(expected, mine, std::memory_order_acq_rel)) continue;
    found.claimed_at.store(now().count(), std::memory_order_relaxed);
    of.search_from.store(i + 1, std::memory_order_relaxed);
    of.ready.fetch_sub(1, std::memory_order_acq_rel);
    return RingItem{index, i};
  }
  return std::nullopt;
}

void Ring::take_back() {
  forget_dead_readers();
  for (std::uint32_t s = 0; s < options_.slots; ++s) {
    Slot& of = slot(s);
    if (phase_of(of.state) != kOpen) continue;
    std::uint32_t ready = 0;
    for (std::uint32_t i = 0; i < count_of(s); ++i) {
      std::atomic<std::uint64_t>& state = item({s, i}).word;
      std::uint64_t left = state.load(std::memory_order_acquire);
      const ClaimWord claim = ClaimWord::unpack(left);
      if (claim.phase == kClaimed && !is_alive(claim.owner()))
        state.compare_exchange_strong(left, word(kReady, life_of(left)));
      ready += phase_of(state) == kReady ? 1 : 0;
    }
    std::uint32_t counted = of.ready.load();
    while (counted < ready && !of.ready.compare_exchange_weak(counted, ready)) {
    }
    if (ready > 0) signal_->raise();
  }
}

namespace {

// Times that another process wrote.
bool is_past(std::int64_t since, Time now, Duration patience) {
  return now - Time(std::clamp(since, std::int64_t{0}, now.count())) > patience;
}

}  // namespace

bool Ring::is_stuck(std::uint32_t index, Time now, Duration patience) const {
  const Slot& of = slot(index);
  const ClaimWord state = ClaimWord::unpack(of.state.load(std::memory_order_acquire));
  if (state.phase == kCompleting) return !is_alive(state.owner()) || is_past(of.completing_since.load(), now, patience);
  const std::int64_t complete = of.bytes_complete.load();
  if (state.phase != kOpen || complete == kBytesMissing || !is_past(complete, now, patience)) return false;
  bool done = true;
  std::int64_t last = complete;
  for (std::uint32_t i = 0; i < count_of(index); ++i) {
    const Item& one = item({index, i});
    const std::int64_t claimed = one.claimed_at.load(std::memory_order_relaxed);
    const std::uint8_t phase = phase_of(one.word);
    if (phase == kClaimed && is_past(claimed, now, patience)) return true;
    done = done && phase == kDone;
    last = std::max(last, claimed);
  }
  return done && is_past(last, now, patience);
}

bool Ring::retire(std::uint32_t index) {
  std::atomic<std::uint64_t>& state = slot(index).state;
  std::uint64_t seen = state.load(std::memory_order_acquire);
  for (;;) {
    const ClaimWord before = ClaimWord::unpack(seen);
    if (before.phase != kOpen && before.phase != kCompleting) return before.phase != kPublished;
    const bool completing = before.phase == kCompleting && is_alive(before.owner());
    const std::uint64_t retired =
        completing ? word(kAbandoned, life_of(seen), before.owner()) : word(kResting, life_of(seen));
    if (state.compare_exchange_strong(seen, retired)) break;
  }
  (void)is_at_rest(index);
  return true;
}

RingWork Ring::work(RingItem what) const {
  return item(what).work;
}

std::span<const std::uint32_t> Ring::rows(RingItem what) const {
  if (!options_.rows) return {};
  const auto* offsets = reinterpret_cast<const std::uint32_t*>(column(what.slot, columns_->rows));
  return {offsets + what.index * kMostRows, std::min<std::size_t>(item(what).work.rows, kMostRows)};
}

std::span<std::byte> Ring::tensor(RingItem what) const {
  return {column(what.slot, columns_->tensors) + what.index * options_.sample_bytes, options_.sample_bytes};
}

bool Ring::finish(RingItem what, const Prepared& prepared) {
  Slot& of = slot(what.slot);
  Item& one = item(what);
  one.busy = prepared.busy.count();
  one.length = prepared.length;
  one.width = prepared.dimensions.width;
  one.height = prepared.dimensions.height;
  one.damaged = prepared.damaged ? 1 : 0;
  of.prep_busy.fetch_add(static_cast<std::uint64_t>(prepared.busy.count()), std::memory_order_relaxed);
  if (prepared.damaged) of.damaged.fetch_add(1, std::memory_order_relaxed);
  header().prepared_by[self_.index % header().prepared_by.size()].fetch_add(1, std::memory_order_relaxed);
  if (options_.ragged_element > 0) lengths(what.slot)[what.index + 1] = prepared.length;
  return done(what);
}

void Ring::reject(RingItem what, const Error& error) {
  Slot& of = slot(what.slot);
  Item& bad = item(what);
  bad.code = static_cast<std::uint16_t>(error.code);
  const std::size_t length = std::min(error.message.size(), kMostReason - 1);
  std::memcpy(bad.reason, error.message.data(), length);
  bad.reason[length] = '\0';
  bad.word.store(word(kBad, life_of(bad.word.load(std::memory_order_relaxed))), std::memory_order_release);
  // In this order: who sees the second has seen the first.
  of.settled.fetch_add(1, std::memory_order_seq_cst);
  of.rejected.fetch_add(1, std::memory_order_seq_cst);
}

void Ring::give_back(RingItem what) {
  std::atomic<std::uint64_t>& state = item(what).word;
  slot(what.slot).ready.fetch_add(1, std::memory_order_release);
  state.store(word(kReady, life_of(state.load(std::memory_order_relaxed))), std::memory_order_release);
  signal_->raise();
}

std::uint32_t Ring::settled(std::uint32_t index) const {
  return slot(index).settled.load(std::memory_order_seq_cst);
}
std::uint32_t Ring::rejected(std::uint32_t index) const {
  return slot(index).rejected.load(std::memory_order_seq_cst);
}

Settled Ring::settled(RingItem what) const {
  const std::uint8_t phase = phase_of(item(what).word);
  return phase == kDone ? Settled::kDone : phase == kBad ? Settled::kBad : Settled::kNotYet;
}

bool Ring::is_claimed(RingItem what) const {
  return what.index < count_of(what.slot) && phase_of(item(what).word) == kClaimed;
}

Prepared Ring::prepared(RingItem what) const {
  const Item& one = item(what);
  return {Duration(one.busy), one.damaged != 0, one.length, {one.width, one.height}};
}

Error Ring::reason(RingItem what) const {
  const Item& bad = item(what);
  return {static_cast<Code>(bad.code), std::string(bad.reason, ::strnlen(bad.reason, kMostReason))};
}

void Ring::wait_again(RingItem what, bool replaced) {
  Slot& of = slot(what.slot);
  if (replaced) of.replaced.fetch_add(1, std::memory_order_relaxed);
  if (phase_of(item(what).word) == kWaiting) return;
  of.bytes_complete = kBytesMissing;
  of.waiting.fetch_add(1, std::memory_order_acq_rel);
  item(what).word.store(word(kWaiting, life_of(of.state.load(std::memory_order_relaxed))), std::memory_order_release);
}

bool Ring::fail(RingItem what, const Error& error) {
  Slot& of = slot(what.slot);
  if (what.index < of.failed_index) {  // the batch's first bad sample speaks, whichever was found first
    of.failed_index = what.index;
    of.failed_code = static_cast<std::uint32_t>(error.code);
    const std::size_t length = std::min(error.message.size(), kErrorText - 1);
    std::memcpy(of.error, error.message.data(), length);
    of.error[length] = '\0';
  }
  if (phase_of(item(what).word) == kWaiting && of.waiting.fetch_sub(1) == 1) of.bytes_complete = now().count();
  return done(what);
}

// From the word on the sample is nobody's, and the slot may be another batch's at any time: all that follows is for
// this life only.
bool Ring::done(RingItem what) {
  Slot& of = slot(what.slot);
  const std::uint32_t life = life_of(item(what).word.load(std::memory_order_relaxed));
  item(what).word.store(word(kDone, life), std::memory_order_release);
  of.settled.fetch_add(1, std::memory_order_seq_cst);
  std::uint64_t finished = of.finished.load(std::memory_order_acquire);
  do {
    if (finished >> 32 != life) return false;
  } while (!of.finished.compare_exchange_weak(finished, finished + 1, std::memory_order_acq_rel));
  if ((finished & 0xffffffff) + 1 < count_of(what.slot)) return false;
  of.completing_since = now().count();
  std::uint64_t open = word(kOpen, life);  // what was retired is completed elsewhere
  return of.state.compare_exchange_strong(open, word(kCompleting, life, self_), std::memory_order_acq_rel);
}

void Ring::call_when_settled() {
  header().call.store(1, std::memory_order_seq_cst);
}

bool Ring::take_call() {
  return header().call.load(std::memory_order_seq_cst) != 0 && header().call.exchange(0) != 0;
}

}  // namespace foreload
