// The readers of a ring. Each says in its own place which batch it takes next and which slots it reads; the feeder
// looks at all of them before it uses a slot again, so taking and releasing a batch costs nobody else anything. Both
// sides first say what they do and then look at what the other says (in one order for all): a reader that comes, or
// takes, while the feeder reclaims is seen by the feeder, or sees that the slot is gone. Without readers nothing is
// passed. What a reader holds it may read for as long as it likes, also when it was dismissed.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/clock.h"
#include "pipeline/ring.h"
#include "pipeline/ring_layout.h"

namespace foreload {

Ring::Reader& Ring::reader(unsigned index) const {
  return header().readers[index % kMostReaders];
}

Ring::Needed Ring::needed() const {
  Needed found;
  for (const Reader& one : header().readers) {
    const std::uint8_t phase = ClaimWord::unpack(one.word.load()).phase;
    if (phase == kNobody) continue;
    // In this order: a reader says that it holds a slot before it says that it goes on.
    const std::uint64_t next = one.next.load();
    if (phase == kAttached) {
      found.any = true;
      found.next = std::min(found.next, next);
    }
    found.held |= one.held.load();
  }
  return found;
}

bool Ring::is_passed(std::uint32_t index, const Needed& needed) const {
  return needed.any && slot(index).number.load(std::memory_order_relaxed) < needed.next &&
         (needed.held >> index & 1) == 0;
}

// The slot is free, unless a reader came meanwhile who needs its batch.
bool Ring::reclaim(std::uint32_t index) {
  std::atomic<std::uint64_t>& state = slot(index).state;
  std::uint64_t seen = state.load();
  if (!state.compare_exchange_strong(seen, word(kFree, life_of(seen)))) return false;
  if (is_passed(index, needed())) return true;
  state.store(seen);
  announce_batch();
  return false;
}

void Ring::rest(std::uint32_t index) {
  std::uint64_t seen = slot(index).state.load();
  if (ClaimWord::unpack(seen).phase == kPublished)
    slot(index).state.compare_exchange_strong(seen, word(kResting, life_of(seen)));
}

void Ring::begin(std::uint64_t number, std::uint64_t end) {
  header().opened = number;
  header().last = end;
  header().fed_by = word(0, 0, self_);
  beat(now());
  Reader& own = reader(kOwnReader);
  own.next = number;
  own.waiting = 0;
  own.word = word(kAttached, life_of(own.word.load()) + 1, self_);
  header().feeding = kForAll;
}

void Ring::end() {
  header().feeding = kIdle;
  for (unsigned i = 0; i < kMostReaders; ++i) dismiss(i);
}

void Ring::beat(Time now) {
  header().beat.store(now.count(), std::memory_order_relaxed);
}

void Ring::feed_only_own() {
  header().feeding = kForOne;
  for (unsigned i = kOwnReader + 1; i < kMostReaders; ++i) dismiss(i);
}

std::vector<ReaderAt> Ring::readers() const {
  std::vector<ReaderAt> found;
  for (unsigned i = 0; i < kMostReaders; ++i) {
    const Reader& one = reader(i);
    if (phase_of(one.word) != kAttached) continue;
    found.push_back({.reader = i,
                     .next = one.next.load(),
                     .waiting = one.waiting.load(std::memory_order_relaxed) != 0,
                     .step = Duration(one.step.load(std::memory_order_relaxed))});
  }
  return found;
}

bool Ring::send_away(unsigned index) {
  std::atomic<std::uint64_t>& place = reader(index).word;
  std::uint64_t seen = place.load();
  const ClaimWord before = ClaimWord::unpack(seen);
  return before.phase == kAttached && place.compare_exchange_strong(seen, word(kAway, life_of(seen), before.owner()));
}

void Ring::dismiss(unsigned index) {
  if (send_away(index)) nudge_consumer();
}

void Ring::forget_dead_readers() {
  for (unsigned i = kOwnReader + 1; i < kMostReaders; ++i) {
    Reader& one = reader(i);
    std::uint64_t seen = one.word.load();
    const ClaimWord left = ClaimWord::unpack(seen);
    if (left.phase == kNobody || is_alive(left.owner())) continue;
    one.word.compare_exchange_strong(seen, word(kNobody, life_of(seen)));
  }
}

std::optional<unsigned> Ring::add_reader() {
  for (unsigned i = kOwnReader + 1; i < kMostReaders; ++i) {
    Reader& place = reader(i);
    std::uint64_t seen = place.word.load();
    if (ClaimWord::unpack(seen).phase != kNobody) continue;
    if (!place.word.compare_exchange_strong(seen, word(kAway, life_of(seen) + 1, self_))) continue;
    place.held = 0;  // somebody may have died here
    return i;
  }
  return std::nullopt;
}

void Ring::remove_reader(unsigned index) {
  Reader& one = reader(index);
  const std::uint64_t seen = one.word.load();
  one.word.store(word(kNobody, life_of(seen)));
}

bool Ring::attach(unsigned index, std::uint64_t number, bool far) {
  Reader& one = reader(index);
  one.next = number;
  one.waiting = 0;
  one.word = word(kAttached, life_of(one.word.load()), self_);
  if (is_there(number, far)) return true;
  detach(index);
  return false;
}

// REQUIRES: a reader that needs the batch is attached, so what is there stays.
bool Ring::is_there(std::uint64_t number, bool far) const {
  if (header().feeding.load() != kForAll) return false;
  const std::uint64_t opened = header().opened.load();
  if (number >= last()) return false;
  if (number >= opened) return far || number - opened <= options_.slots;
  // One that somebody has kept may be there although those behind it are not.
  std::uint64_t missing = opened - number;
  for (std::uint32_t i = 0; i < options_.slots; ++i) {
    const std::uint64_t seen = slot(i).state.load();
    const std::uint8_t phase = ClaimWord::unpack(seen).phase;
    const bool comes = phase == kOpen || phase == kCompleting || phase == kPublished;
    const std::uint64_t found = slot(i).number.load();
    if (comes && found >= number && found < opened && slot(i).state.load() == seen) --missing;
  }
  return missing == 0;
}

void Ring::detach(unsigned index) {
  if (send_away(index)) wake_feeder();
}

bool Ring::is_attached(unsigned index) const {
  return phase_of(reader(index).word) == kAttached;
}

std::uint64_t Ring::opened() const {
  return header().opened.load();
}
std::uint64_t Ring::last() const {
  return header().last.load(std::memory_order_relaxed);
}

void Ring::end_wait(unsigned index) {
  reader(index).waiting.store(0, std::memory_order_relaxed);
}

bool Ring::is_fed(Time now) const {
  constexpr Duration kPatience = std::chrono::seconds(2);
  const Time beat(std::clamp<std::int64_t>(header().beat.load(std::memory_order_relaxed), 0, now.count()));
  return now - beat <= kPatience && is_alive(ClaimWord::unpack(header().fed_by.load()).owner());
}

std::optional<std::uint32_t> Ring::take(unsigned index, std::uint64_t number) {
  Reader& me = reader(index);
  if (number < me.next.load(std::memory_order_relaxed)) return std::nullopt;  // it had it
  for (std::uint32_t i = 0; i < options_.slots; ++i) {
    const Slot& of = slot(i);
    const std::uint64_t seen = of.state.load();
    if (ClaimWord::unpack(seen).phase != kPublished || of.number.load(std::memory_order_relaxed) != number) continue;
    const std::uint64_t bit = std::uint64_t{1} << i;
    me.held.fetch_or(bit);
    if (of.state.load() == seen && is_attached(index)) {
      me.next = number + 1;
      me.waiting.store(0, std::memory_order_relaxed);
      return i;
    }
    me.held.fetch_and(~bit);
  }
  return std::nullopt;
}

unsigned Ring::held(unsigned index) const {
  return static_cast<unsigned>(std::popcount(reader(index).held.load()));
}

void Ring::release(unsigned index, std::uint32_t slot) {
  const std::uint64_t bit = std::uint64_t{1} << slot;
  forget(slot);
  const std::uint64_t before = reader(index).held.fetch_and(~bit);
  // Of a shared ring that is no proof: another process may have written anything.
  FORELOAD_CHECK((before & bit) != 0 || is_alive_, "a batch is released once");
}

// What this process wrote to its pages of the slot is not to be seen in the next batch.
void Ring::forget(std::uint32_t slot) const {
  if (view_) view_->forget(static_cast<std::size_t>(column(slot, 0) - region_.bytes().data()), columns_->stride);
}

std::uint64_t Ring::keep(unsigned index) {
  const std::uint64_t held = reader(index).held.load();
  for (std::uint32_t i = 0; i < options_.slots; ++i) {
    if ((held >> i & 1) != 0)
      view_->make_own(static_cast<std::size_t>(column(i, 0) - region_.bytes().data()), columns_->stride);
  }
  return held & reader(index).held.fetch_and(~held);
}

const std::byte* Ring::seen(std::uint32_t slot, std::size_t offset) const {
  const std::byte* from = column(slot, offset);
  return view_ ? view_->bytes().data() + (from - region_.bytes().data()) : from;
}

std::span<const std::byte> Ring::data(std::uint32_t slot) const {
  const std::span<const std::byte> all(seen(slot, columns_->tensors), count_of(slot) * options_.sample_bytes);
  if (options_.ragged_element == 0) return all;
  const std::uint64_t elements = std::min<std::uint64_t>(offsets(slot).back(), all.size() / options_.ragged_element);
  return all.first(elements * options_.ragged_element);
}
std::span<const std::uint64_t> Ring::offsets(std::uint32_t slot) const {
  const std::size_t count = options_.ragged_element > 0 ? count_of(slot) + 1 : 0;
  return {reinterpret_cast<const std::uint64_t*>(seen(slot, columns_->lengths)), count};
}
std::span<const std::int64_t> Ring::labels(std::uint32_t slot) const {
  return {reinterpret_cast<const std::int64_t*>(seen(slot, columns_->labels)), count_of(slot)};
}
std::span<const SampleId> Ring::ids(std::uint32_t slot) const {
  return {reinterpret_cast<const SampleId*>(seen(slot, columns_->ids)), count_of(slot)};
}
std::span<const Position> Ring::positions(std::uint32_t slot) const {
  return {reinterpret_cast<const Position*>(seen(slot, columns_->positions)), count_of(slot)};
}
std::span<const Mix> Ring::mixed(std::uint32_t slot) const {
  return {reinterpret_cast<const Mix*>(seen(slot, columns_->mixes)), options_.mixes ? count_of(slot) : 0};
}

void Ring::set_pace(unsigned index, Time last, Duration step) {
  reader(index).last.store(last.count(), std::memory_order_relaxed);
  reader(index).step.store(step.count(), std::memory_order_relaxed);
}

LearnerPace Ring::pace(unsigned index) const {
  const Reader& one = reader(index);
  return {one.next.load(std::memory_order_relaxed), Time(one.last.load(std::memory_order_relaxed)),
          Duration(one.step.load(std::memory_order_relaxed))};
}

LearnerPace Ring::pace() const {
  unsigned foremost = kOwnReader;
  std::optional<std::uint64_t> next;
  const std::uint64_t end = opened();  // who is to begin later needs nothing now
  for (unsigned i = 0; i < kMostReaders; ++i) {
    const Reader& one = reader(i);
    if (phase_of(one.word) != kAttached) continue;
    const std::uint64_t its = one.next.load(std::memory_order_relaxed);
    if (its > end || (next && its <= *next)) continue;
    next = its;
    foremost = i;
  }
  return pace(foremost);
}

}  // namespace foreload
