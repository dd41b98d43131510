#include "pipeline/ring.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/clock.h"
#include "base/futex.h"
#include "pipeline/ring_layout.h"

namespace foreload {
namespace {

constexpr Duration kLookAgain = std::chrono::milliseconds(100);

std::size_t aligned(std::size_t bytes, std::size_t unit = 64) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

Ring::Columns Ring::columns(const RingOptions& options) {
  Columns at{};
  at.items = aligned(sizeof(Slot));
  at.labels = at.items + aligned(options.batch * sizeof(Item));
  at.ids = at.labels + aligned(options.batch * 8);
  at.positions = at.ids + aligned(options.batch * 8);
  at.lengths = at.positions + aligned(options.batch * 8);
  at.mixes = at.lengths + (options.ragged_element > 0 ? aligned((options.batch + 1) * 8) : 0);
  at.rows = at.mixes + (options.mixes ? aligned(options.batch * sizeof(Mix)) : 0);
  at.tensors = at.rows + (options.rows ? aligned(options.batch * kMostRows * sizeof(std::uint32_t)) : 0);
  at.stride = aligned(at.tensors + options.batch * options.sample_bytes, kPage);
  return at;
}

Bytes Ring::region_bytes(const RingOptions& options) {
  return aligned(sizeof(Header), kPage) + options.slots * columns(options).stride;
}

Ring::Ring(Region region, const RingOptions& options)
    : region_(std::move(region)),
      options_(options),
      columns_(std::make_unique<const Columns>(columns(options))),
      signal_(&header().work) {}

Result<std::shared_ptr<Ring>> Ring::create(const RingOptions& options) {
  FORELOAD_CHECK(options.slots > 0 && options.slots <= kMostSlots, "the memory plan keeps the ring small");
  FORELOAD_ASSIGN(Region region, Region::map(region_bytes(options), "the batches"));
  return create(options, std::move(region));
}

std::shared_ptr<Ring> Ring::create(const RingOptions& options, Region region) {
  std::shared_ptr<Ring> ring(new Ring(std::move(region), options));
  new (ring->region_.bytes().data()) Header{};
  for (std::uint32_t i = 0; i < options.slots; ++i) new (ring->column(i, 0)) Slot{};
  ring->reader(kOwnReader).word = word(kAway, 0);
  return ring;
}

std::shared_ptr<Ring> Ring::attach(const RingOptions& options, Region region) {
  return std::shared_ptr<Ring>(new Ring(std::move(region), options));
}

void Ring::set_member(MemberId self, WorkSignal* signal, std::function<bool(MemberId)> is_alive) {
  self_ = self;
  signal_ = signal;
  is_alive_ = std::move(is_alive);
}

Ring::Header& Ring::header() const {
  return *reinterpret_cast<Header*>(region_.bytes().data());
}

std::byte* Ring::column(std::uint32_t slot, std::size_t offset) const {
  return region_.bytes().data() + aligned(sizeof(Header), kPage) + slot * columns_->stride + offset;
}

Ring::Slot& Ring::slot(std::uint32_t index) const {
  return *reinterpret_cast<Slot*>(column(index, 0));
}

Ring::Item& Ring::item(RingItem item) const {
  return reinterpret_cast<Item*>(column(item.slot, columns_->items))[item.index];
}

std::uint64_t Ring::count_of(std::uint32_t index) const {
  return std::min(slot(index).count.load(std::memory_order_relaxed), options_.batch);
}

// Of a slot that is not open: nobody has claimed of it, and nobody can any more. What is ready is sealed first, because
// somebody who looked at the slot while it was open may be about to claim.
bool Ring::is_at_rest(std::uint32_t index) {
  bool rests = true;
  for (std::uint32_t i = 0; i < count_of(index); ++i) {
    std::atomic<std::uint64_t>& state = item({index, i}).word;
    std::uint64_t seen = state.load(std::memory_order_acquire);
    const ClaimWord claim = ClaimWord::unpack(seen);
    const bool left = claim.phase == kClaimed && !is_alive(claim.owner());
    if (claim.phase == kReady || left) state.compare_exchange_strong(seen, word(kWaiting, life_of(seen)));
    rests = rests && phase_of(state) != kClaimed;
  }
  return rests;
}

void Ring::wait_for_claims(Time deadline) {
  for (std::uint32_t index = 0; index < options_.slots; ++index) {
    while (!is_at_rest(index) && now() < deadline) {
      wait_as_feeder(feeder_signal(), now() + std::chrono::milliseconds(1));
    }
  }
}

std::optional<std::uint32_t> Ring::free_slot() {
  const Needed readers = needed();
  for (std::uint32_t index = 0; index < options_.slots; ++index) {
    const std::uint64_t seen = slot(index).state.load(std::memory_order_acquire);
    const ClaimWord state = ClaimWord::unpack(seen);
    if (state.phase == kFree || (state.phase == kPublished && is_passed(index, readers) && reclaim(index)))
      return index;
    const bool retired = state.phase == kResting || (state.phase == kAbandoned && !is_alive(state.owner()));
    if (retired && is_at_rest(index) && (readers.held >> index & 1) == 0) return index;
  }
  return std::nullopt;
}

void Ring::open(std::uint32_t index, const BatchPlan& plan) {
  FORELOAD_CHECK(plan.count <= options_.batch, "a batch fits its slot");
  Slot& free = slot(index);
  const std::uint32_t life = life_of(free.state.load(std::memory_order_acquire)) + 1;
  free.number.store(plan.number, std::memory_order_relaxed);
  free.epoch = plan.epoch;
  free.step = plan.step;
  free.first = plan.first;
  free.count = plan.count;
  free.ready = free.search_from = free.settled = free.rejected = 0;
  free.finished = std::uint64_t{life} << 32;
  free.waiting = static_cast<std::uint32_t>(plan.count);
  free.bytes_complete = plan.count == 0 ? 0 : kBytesMissing;
  free.memory_bytes = free.disk_bytes = free.peer_bytes = free.source_bytes = free.filled_bytes = 0;
  free.prep_busy = free.replaced = free.damaged = 0;
  free.failed_index = kNoFailure;
  auto* positions = reinterpret_cast<Position*>(column(index, columns_->positions));
  for (std::uint32_t i = 0; i < plan.count; ++i) {
    item({index, i}).word.store(word(kWaiting, life), std::memory_order_relaxed);
    positions[i] = plan.position(i);
  }
  if (options_.ragged_element > 0) lengths(index)[0] = 0;
  // A batch that is done again had a slot before.
  header().opened.store(std::max(header().opened.load(std::memory_order_relaxed), plan.number + 1));
  free.state.store(word(plan.count == 0 ? kPublished : kOpen, life), std::memory_order_release);
  if (plan.count == 0) announce_batch();
}

void Ring::add_bytes(std::uint32_t index, const OriginBytes& bytes) {
  slot(index).memory_bytes.fetch_add(bytes.memory, std::memory_order_relaxed);
  slot(index).disk_bytes.fetch_add(bytes.disk, std::memory_order_relaxed);
  slot(index).peer_bytes.fetch_add(bytes.peer, std::memory_order_relaxed);
  slot(index).source_bytes.fetch_add(bytes.source, std::memory_order_relaxed);
  slot(index).filled_bytes.fetch_add(bytes.filled, std::memory_order_relaxed);
}

struct Ring::Signal {
  std::atomic<std::uint32_t>& word;
  std::atomic<std::uint32_t>& sleepers;
};

bool Ring::wait(const Signal& signal, std::uint32_t seen, Time until) {
  signal.sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (!stopped()) futex_wait(signal.word, seen, until);
  signal.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return !stopped();
}

bool Ring::wait_for_work(std::uint32_t seen, Time until) {
  return wait({signal_->count, signal_->sleepers}, seen, until);
}
bool Ring::wait_for_batch(unsigned index, std::uint32_t seen) {
  reader(index).waiting.store(1, std::memory_order_relaxed);
  // Who publishes in another process may be stopped, or die, before it says so.
  const Time until = is_alive_ ? now() + kLookAgain : kNever;
  return wait({header().published, header().published_sleepers}, seen, until);
}
unsigned Ring::sleeping_workers() const {
  return signal_->sleepers.load(std::memory_order_relaxed);
}
std::uint32_t Ring::work_signal() const {
  return signal_->count.load(std::memory_order_seq_cst);
}
std::uint32_t Ring::published_signal() const {
  return header().published.load(std::memory_order_seq_cst);
}

void Ring::nudge_consumer() {
  header().published.fetch_add(1);
  futex_wake_all(header().published);
}

BatchPlan Ring::plan_of(std::uint32_t index) const {
  const Slot& of = slot(index);
  return {.number = of.number.load(std::memory_order_relaxed),
          .epoch = of.epoch,
          .step = of.step,
          .first = of.first,
          .count = count_of(index)};
}

Position Ring::position(RingItem item) const {
  return reinterpret_cast<const Position*>(column(item.slot, columns_->positions))[item.index];
}

std::span<std::byte> Ring::tensors(std::uint32_t index) const {
  return {column(index, columns_->tensors), count_of(index) * options_.sample_bytes};
}
std::span<std::uint64_t> Ring::lengths(std::uint32_t index) const {
  const std::size_t count = options_.ragged_element > 0 ? count_of(index) + 1 : 0;
  return {reinterpret_cast<std::uint64_t*>(column(index, columns_->lengths)), count};
}
std::span<Mix> Ring::mixes(std::uint32_t index) const {
  return {reinterpret_cast<Mix*>(column(index, columns_->mixes)), options_.mixes ? count_of(index) : 0};
}

void Ring::publish(std::uint32_t index, Duration busy) {
  Slot& full = slot(index);
  full.prep_busy.fetch_add(static_cast<std::uint64_t>(busy.count()), std::memory_order_relaxed);
  std::uint64_t seen = full.state.load(std::memory_order_acquire);
  const std::uint32_t life = life_of(seen);
  if (ClaimWord::unpack(seen).phase == kCompleting &&
      full.state.compare_exchange_strong(seen, word(kPublished, life), std::memory_order_acq_rel)) {
    return announce_batch();
  }
  // It took so long that the batch is done elsewhere.
  if (ClaimWord::unpack(seen).phase == kAbandoned) full.state.compare_exchange_strong(seen, word(kResting, life));
  wake_feeder();
}

void Ring::announce_batch() {
  header().published.fetch_add(1, std::memory_order_seq_cst);
  if (header().published_sleepers.load(std::memory_order_seq_cst) > 0) futex_wake_all(header().published);
}

// A reader that takes it at this moment has said so, or sees that it is not published any more.
bool Ring::recall(std::uint32_t index) {
  std::atomic<std::uint64_t>& state = slot(index).state;
  std::uint64_t seen = state.load();
  if (ClaimWord::unpack(seen).phase != kPublished) return false;
  const std::uint64_t resting = word(kResting, life_of(seen));
  if (!state.compare_exchange_strong(seen, resting)) return false;
  if ((needed().held >> index & 1) == 0) return true;
  state.store(seen);
  announce_batch();
  return false;
}

std::optional<std::uint32_t> Ring::recall_after(std::uint64_t number) {
  std::optional<std::uint32_t> latest;
  const std::uint64_t held = needed().held;
  for (std::uint32_t i = 0; i < options_.slots; ++i) {
    const std::uint64_t found = slot(i).number.load(std::memory_order_relaxed);
    if (phase_of(slot(i).state) != kPublished || found <= number || (held >> i & 1) != 0) continue;
    if (!latest || found > slot(*latest).number.load(std::memory_order_relaxed)) latest = i;
  }
  return latest && recall(*latest) ? latest : std::nullopt;
}

std::optional<Time> Ring::bytes_complete(std::uint32_t index) const {
  const std::int64_t at = slot(index).bytes_complete.load();
  return at == kBytesMissing ? std::nullopt : std::optional(Time(at));
}

std::optional<Error> Ring::error_of(std::uint32_t index) const {
  const Slot& of = slot(index);
  if (of.failed_index == kNoFailure) return std::nullopt;
  return Error{static_cast<Code>(of.failed_code), std::string(of.error, ::strnlen(of.error, kErrorText))};
}

BatchCost Ring::cost_of(std::uint32_t index) const {
  const Slot& of = slot(index);
  return {.bytes = {.memory = of.memory_bytes,
                    .disk = of.disk_bytes,
                    .peer = of.peer_bytes,
                    .source = of.source_bytes,
                    .filled = of.filled_bytes},
          .prep_busy = Duration(static_cast<std::int64_t>(of.prep_busy.load())),
          .replaced = of.replaced,
          .damaged = of.damaged};
}

unsigned Ring::published() const {
  const std::uint64_t next = pace().next;
  unsigned count = 0;
  for (std::uint32_t i = 0; i < options_.slots; ++i) {
    const Slot& of = slot(i);
    count += phase_of(of.state) == kPublished && of.number.load(std::memory_order_relaxed) >= next ? 1 : 0;
  }
  return count;
}

void Ring::stop() {
  header().stopped = 1;
  end();
  signal_->count.fetch_add(1);
  header().published.fetch_add(1);
  futex_wake_all(signal_->count);
  futex_wake_all(header().published);
}

bool Ring::stopped() const {
  return header().stopped.load() != 0;
}

void Ring::reset() {
  for (std::uint32_t i = 0; i < options_.slots; ++i) {
    if (!retire(i)) rest(i);  // it was published, maybe meanwhile
  }
  header().stopped = 0;
}

void Ring::wake_feeder() {
  header().feeder.fetch_add(1);
  futex_wake_all(header().feeder);
}
std::uint32_t Ring::feeder_signal() const {
  return header().feeder.load();
}
void Ring::wait_as_feeder(std::uint32_t seen, Time deadline) const {
  futex_wait(header().feeder, seen, deadline);
}

}  // namespace foreload
