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

std::size_t aligned(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
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
  at.stride = at.tensors + aligned(options.batch * options.sample_bytes);
  return at;
}

Bytes Ring::region_bytes(const RingOptions& options) {
  return aligned(sizeof(Header)) + options.slots * columns(options).stride;
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
  return ring;
}

std::shared_ptr<Ring> Ring::attach(const RingOptions& options, Region region) {
  return std::shared_ptr<Ring>(new Ring(std::move(region), options));
}

void Ring::set_member(MemberId self, WorkSignal* signal) {
  self_ = self;
  signal_ = signal;
}

Ring::Header& Ring::header() const {
  return *reinterpret_cast<Header*>(region_.bytes().data());
}

std::byte* Ring::column(std::uint32_t slot, std::size_t offset) const {
  return region_.bytes().data() + aligned(sizeof(Header)) + slot * columns_->stride + offset;
}

Ring::Slot& Ring::slot(std::uint32_t index) const {
  return *reinterpret_cast<Slot*>(column(index, 0));
}

Ring::Item& Ring::item(RingItem item) const {
  return reinterpret_cast<Item*>(column(item.slot, columns_->items))[item.index];
}

std::uint64_t Ring::count_of(std::uint32_t index) const {
  return std::min(slot(index).count, options_.batch);
}

bool Ring::has_claims(std::uint32_t index) const {
  if (slot(index).completer.load() != 0) return true;
  for (std::uint32_t i = 0; i < count_of(index); ++i) {
    if (phase_of(item({index, i}).word) == kClaimed) return true;
  }
  return false;
}

void Ring::wait_for_claims(Time deadline) const {
  for (std::uint32_t index = 0; index < options_.slots; ++index) {
    while (has_claims(index) && now() < deadline) wait_as_feeder(feeder_signal(), now() + std::chrono::milliseconds(1));
  }
}

std::optional<std::uint32_t> Ring::free_slot() {
  for (std::uint32_t index = 0; index < options_.slots; ++index) {
    const std::uint8_t phase = phase_of(slot(index).state);
    if (phase == kFree) return index;
    if ((phase == kResting || phase == kSpoiled) && !has_claims(index)) return index;
  }
  return std::nullopt;
}

void Ring::open(std::uint32_t index, const BatchPlan& plan) {
  FORELOAD_CHECK(plan.count <= options_.batch, "a batch fits its slot");
  Slot& free = slot(index);
  free.number.store(plan.number, std::memory_order_relaxed);
  free.epoch = plan.epoch;
  free.step = plan.step;
  free.first = plan.first;
  free.count = plan.count;
  free.ready = free.search_from = free.finished = free.settled = free.rejected = 0;
  free.waiting = static_cast<std::uint32_t>(plan.count);
  free.bytes_complete = plan.count == 0 ? 0 : kBytesMissing;
  free.memory_bytes = free.disk_bytes = free.source_bytes = free.filled_bytes = 0;
  free.prep_busy = free.replaced = free.damaged = 0;
  free.failed_index = kNoFailure;
  auto* positions = reinterpret_cast<Position*>(column(index, columns_->positions));
  for (std::uint32_t i = 0; i < plan.count; ++i) {
    item({index, i}).word.store(word(kWaiting), std::memory_order_relaxed);
    positions[i] = plan.first + i;
  }
  if (options_.ragged_element > 0) lengths(index)[0] = 0;
  free.state.store(word(kOpen), std::memory_order_release);
  if (plan.count == 0) publish(index);
}

void Ring::add_bytes(std::uint32_t index, const OriginBytes& bytes) {
  slot(index).memory_bytes.fetch_add(bytes.memory, std::memory_order_relaxed);
  slot(index).disk_bytes.fetch_add(bytes.disk, std::memory_order_relaxed);
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
bool Ring::wait_for_batch(std::uint32_t seen) {
  return wait({header().published, header().published_sleepers}, seen, kNever);
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
  return {of.number.load(std::memory_order_relaxed), of.epoch, of.step, of.first, count_of(index)};
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
  std::uint64_t mine = completing();
  std::uint64_t empty = word(kOpen);
  const bool done = full.state.compare_exchange_strong(mine, word(kPublished), std::memory_order_acq_rel) ||
                    (full.count == 0 && full.state.compare_exchange_strong(empty, word(kPublished)));
  full.completer.store(0);
  if (!done) return wake_feeder();  // it was retired meanwhile, and is free now
  header().published.fetch_add(1, std::memory_order_seq_cst);
  if (header().published_sleepers.load(std::memory_order_seq_cst) > 0) futex_wake_all(header().published);
}

std::optional<std::uint32_t> Ring::take(std::uint64_t number) {
  for (std::uint32_t i = 0; i < options_.slots; ++i) {
    Slot& of = slot(i);
    if (phase_of(of.state) != kPublished || of.number.load(std::memory_order_relaxed) != number) continue;
    of.state.store(word(kLeased), std::memory_order_release);
    return i;
  }
  return std::nullopt;
}

std::optional<Time> Ring::bytes_complete(std::uint32_t index) const {
  const std::int64_t at = slot(index).bytes_complete.load();
  return at == kBytesMissing ? std::nullopt : std::optional(Time(at));
}

std::optional<Error> Ring::error_of(std::uint32_t index) const {
  const Slot& of = slot(index);
  if (of.failed_index == kNoFailure) return std::nullopt;
  return Error{static_cast<Code>(of.failed_code), of.error};
}

BatchCost Ring::cost_of(std::uint32_t index) const {
  const Slot& of = slot(index);
  return {
      .bytes = {.memory = of.memory_bytes, .disk = of.disk_bytes, .source = of.source_bytes, .filled = of.filled_bytes},
      .prep_busy = Duration(static_cast<std::int64_t>(of.prep_busy.load())),
      .replaced = of.replaced,
      .damaged = of.damaged};
}

unsigned Ring::count(std::uint8_t phase) const {
  unsigned count = 0;
  for (std::uint32_t i = 0; i < options_.slots; ++i) count += phase_of(slot(i).state) == phase ? 1 : 0;
  return count;
}
unsigned Ring::leased() const {
  return count(kLeased);
}
unsigned Ring::published() const {
  return count(kPublished);
}

void Ring::release(std::uint32_t index) {
  FORELOAD_CHECK(phase_of(slot(index).state) == kLeased, "a batch is released once");
  slot(index).state.store(word(kFree), std::memory_order_release);
}

std::span<const std::byte> Ring::data(std::uint32_t index) const {
  if (options_.ragged_element == 0) return tensors(index);
  return tensors(index).first(lengths(index).back() * options_.ragged_element);
}
std::span<const std::uint64_t> Ring::offsets(std::uint32_t index) const {
  return lengths(index);
}
std::span<const std::int64_t> Ring::labels(std::uint32_t index) const {
  return {reinterpret_cast<const std::int64_t*>(column(index, columns_->labels)), count_of(index)};
}
std::span<const SampleId> Ring::ids(std::uint32_t index) const {
  return {reinterpret_cast<const SampleId*>(column(index, columns_->ids)), count_of(index)};
}
std::span<const Position> Ring::positions(std::uint32_t index) const {
  return {reinterpret_cast<const Position*>(column(index, columns_->positions)), count_of(index)};
}

void Ring::stop() {
  header().stopped = 1;
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
    (void)retire(i, false);
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
