// The samples of a slot. `ready` counts ready samples that nobody has reserved. A worker first takes one off that
// count, then looks for it among the items: there is one, because counts are raised after an item became ready and
// lowered before it is taken. Whoever finishes the last sample must publish the slot. Signals are counters that only
// grow; a sleeper passes the value it saw before it looked, so no wake-up is lost.
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

std::uint64_t Ring::claimed() const {
  return ClaimWord{.phase = kClaimed, .member = self_.index, .member_generation = self_.generation}.packed();
}

std::uint64_t Ring::completing() const {
  return ClaimWord{.phase = kCompleting, .member = self_.index, .member_generation = self_.generation}.packed();
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
  ready.word.store(word(kReady), std::memory_order_release);
  if (of.waiting.fetch_sub(1, std::memory_order_acq_rel) == 1) of.bytes_complete = now.count();
  of.ready.fetch_add(1, std::memory_order_release);
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
    if (const auto found = claim_in(*chosen)) return found;
    candidates[*chosen].ready = 0;  // others were quicker; what became ready since was announced
  }
  return std::nullopt;
}

// One look at every item. One that becomes ready behind it is announced after the caller has read the signal.
std::optional<RingItem> Ring::claim_in(std::uint32_t index) {
  Slot& of = slot(index);
  const std::uint64_t count = count_of(index);
  const std::uint32_t from = of.search_from.load(std::memory_order_relaxed);
  for (std::uint64_t turn = 0; turn < count; ++turn) {
    const auto i = static_cast<std::uint32_t>((from + turn) % count);
    Item& one = item({index, i});
    if (phase_of(one.word) != kReady) continue;
    one.claimed_at.store(now().count(), std::memory_order_relaxed);
    std::uint64_t expected = word(kReady);
    if (!one.word.compare_exchange_strong(expected, claimed(), std::memory_order_acq_rel)) continue;
    std::uint32_t ready = of.ready.load(std::memory_order_relaxed);
    while (ready > 0 && !of.ready.compare_exchange_weak(ready, ready - 1, std::memory_order_acq_rel)) {
    }
    of.search_from.store(i + 1, std::memory_order_relaxed);
    return RingItem{index, i};
  }
  return std::nullopt;
}

void Ring::take_back(MemberId dead) {
  for (std::uint32_t s = 0; s < options_.slots; ++s) {
    Slot& of = slot(s);
    std::uint64_t seen = of.state.load(std::memory_order_acquire);
    const ClaimWord state = ClaimWord::unpack(seen);
    if (state.phase == kCompleting && state.owner() == dead) of.state.compare_exchange_strong(seen, word(kSpoiled));
    std::uint64_t completer = of.completer.load();
    if (ClaimWord::unpack(completer).owner() == dead) of.completer.compare_exchange_strong(completer, 0);
    if (state.phase != kOpen && state.phase != kResting) continue;
    std::uint32_t ready = 0;
    for (std::uint32_t i = 0; i < count_of(s); ++i) {
      std::uint64_t left = item({s, i}).word.load(std::memory_order_acquire);
      const ClaimWord claim = ClaimWord::unpack(left);
      if (claim.phase == kClaimed && claim.owner() == dead)
        item({s, i}).word.compare_exchange_strong(left, word(kReady));
      ready += phase_of(item({s, i}).word) == kReady ? 1 : 0;
    }
    // What the dead had counted off and not taken is counted again; one too many is harmless.
    if (of.ready.load() < ready) of.ready.store(ready);
    if (ready > 0) signal_->raise();
  }
  wake_feeder();
}

bool Ring::is_stuck(std::uint32_t index, Time now, Duration patience) const {
  const Slot& of = slot(index);
  const std::uint8_t phase = phase_of(of.state);
  if (phase == kSpoiled) return true;
  const auto complete = bytes_complete(index);
  if (phase != kOpen || !complete || now - *complete < patience) return false;
  for (std::uint32_t i = 0; i < count_of(index); ++i) {
    const Item& one = item({index, i});
    if (phase_of(one.word) == kClaimed && now - Time(one.claimed_at.load()) > patience) return true;
  }
  return false;
}

bool Ring::retire(std::uint32_t index, bool stuck) {
  Slot& of = slot(index);
  std::uint64_t seen = of.state.load(std::memory_order_acquire);
  do {
    const std::uint8_t phase = ClaimWord::unpack(seen).phase;
    if (phase == kLeased || (stuck && phase != kOpen && phase != kSpoiled)) return false;  // it went on meanwhile
  } while (!of.state.compare_exchange_weak(seen, word(kResting), std::memory_order_acq_rel));
  for (std::uint32_t i = 0; i < count_of(index); ++i) {
    std::uint64_t ready = word(kReady);
    item({index, i}).word.compare_exchange_strong(ready, word(kWaiting));
  }
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
  item(what).prepared = prepared;
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
  bad.word.store(word(kBad), std::memory_order_release);
  // In this order: who sees the second has seen the first.
  of.settled.fetch_add(1, std::memory_order_seq_cst);
  of.rejected.fetch_add(1, std::memory_order_seq_cst);
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

const Prepared& Ring::prepared(RingItem what) const {
  return item(what).prepared;
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
  item(what).word.store(word(kWaiting), std::memory_order_release);
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

bool Ring::done(RingItem what) {
  Slot& of = slot(what.slot);
  item(what).word.store(word(kDone), std::memory_order_release);
  of.settled.fetch_add(1, std::memory_order_seq_cst);
  if (of.finished.fetch_add(1, std::memory_order_acq_rel) + 1 < of.count) return false;
  of.completer.store(completing());
  std::uint64_t open = word(kOpen);
  if (of.state.compare_exchange_strong(open, completing(), std::memory_order_acq_rel)) return true;
  of.completer.store(0);  // it was retired, and is done again elsewhere
  return false;
}

void Ring::call_when_settled() {
  header().call.store(1, std::memory_order_seq_cst);
}

bool Ring::take_call() {
  return header().call.load(std::memory_order_seq_cst) != 0 && header().call.exchange(0) != 0;
}

}  // namespace foreload
