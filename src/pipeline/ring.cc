// Region:  [ Header ][ slot 0 ][ slot 1 ] …
// Slot:    [ Slot ][ item words ][ labels ][ ids ][ positions ][ offsets ][ mixes ][ tensors ]
// Each column is 64-byte aligned; offsets and mixes take no room when the chain has none.
//
// `ready` counts ready samples that nobody has reserved. A worker first takes one off that count, then looks for
// it among the items: there is one, because counts are raised after an item became ready and lowered before it is
// taken. Whoever finishes the last sample must publish the slot. Signals are counters that only grow; a sleeper
// passes the value it saw before it looked, so no wake-up is lost.
#include "pipeline/ring.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/clock.h"
#include "base/futex.h"
#include "policy/prep_order.h"

namespace foreload {
namespace {

enum SlotPhase : std::uint8_t { kFree = 0, kOpen = 1, kPublished = 2, kLeased = 3 };
enum ItemPhase : std::uint8_t { kWaiting = 0, kReady = 1, kClaimed = 2, kDone = 3 };

constexpr std::size_t kErrorText = 2048;
constexpr std::uint32_t kNoFailure = ~0u;
constexpr std::int64_t kBytesMissing = -1;
constexpr unsigned kMostSlots = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

std::uint64_t word(std::uint8_t phase) {
  return ClaimWord{.phase = phase}.packed();
}
std::uint8_t phase_of(const std::atomic<std::uint64_t>& state) {
  return ClaimWord::unpack(state.load(std::memory_order_acquire)).phase;
}

}  // namespace

struct alignas(64) Ring::Header {
  std::atomic<std::uint32_t> work{0};
  std::atomic<std::uint32_t> work_sleepers{0};
  std::atomic<std::uint32_t> published{0};
  std::atomic<std::uint32_t> published_sleepers{0};
  std::atomic<std::uint32_t> stopped{0};
};

struct alignas(64) Ring::Slot {
  std::atomic<std::uint64_t> state{0};
  std::atomic<std::uint64_t> number{0};
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::atomic<std::uint32_t> ready{0};
  std::atomic<std::uint32_t> waiting{0};
  std::atomic<std::uint32_t> unfinished{0};
  std::atomic<std::uint32_t> search_from{0};
  std::atomic<std::int64_t> bytes_complete{kBytesMissing};
  std::atomic<std::uint64_t> memory_bytes{0};
  std::atomic<std::uint64_t> disk_bytes{0};
  std::atomic<std::uint64_t> source_bytes{0};
  std::atomic<std::uint64_t> filled_bytes{0};
  std::atomic<std::uint64_t> prep_busy{0};
  std::atomic<std::uint64_t> replaced{0};
  std::atomic<std::uint64_t> damaged{0};
  std::uint32_t failed_index = kNoFailure;
  std::uint32_t failed_code = 0;
  char error[kErrorText] = {};
};

struct Ring::Offsets {
  std::size_t items, labels, ids, positions, lengths, mixes, tensors, stride;
};

Ring::Offsets Ring::offsets(const RingOptions& options) {
  Offsets at{};
  at.items = aligned(sizeof(Slot));
  at.labels = at.items + aligned(options.batch * 8);
  at.ids = at.labels + aligned(options.batch * 8);
  at.positions = at.ids + aligned(options.batch * 8);
  at.lengths = at.positions + aligned(options.batch * 8);
  at.mixes = at.lengths + (options.ragged_element > 0 ? aligned((options.batch + 1) * 8) : 0);
  at.tensors = at.mixes + (options.mixes ? aligned(options.batch * sizeof(Mix)) : 0);
  at.stride = at.tensors + aligned(options.batch * options.sample_bytes);
  return at;
}

Bytes Ring::region_bytes(const RingOptions& options) {
  return aligned(sizeof(Header)) + options.slots * offsets(options).stride;
}

Ring::Ring(Region region, const RingOptions& options)
    : region_(std::move(region)), options_(options), offsets_(std::make_unique<const Offsets>(offsets(options))) {
  new (region_.bytes().data()) Header{};
  for (std::uint32_t i = 0; i < options.slots; ++i) new (column(i, 0)) Slot{};
}

Result<std::shared_ptr<Ring>> Ring::create(const RingOptions& options) {
  FORELOAD_CHECK(options.slots > 0 && options.slots <= kMostSlots, "the memory plan keeps the ring small");
  FORELOAD_ASSIGN(Region region, Region::map(region_bytes(options), "the batches"));
  return std::shared_ptr<Ring>(new Ring(std::move(region), options));
}

Ring::Header& Ring::header() const {
  return *reinterpret_cast<Header*>(region_.bytes().data());
}

std::byte* Ring::column(std::uint32_t slot, std::size_t offset) const {
  return region_.bytes().data() + aligned(sizeof(Header)) + slot * offsets_->stride + offset;
}

Ring::Slot& Ring::slot(std::uint32_t index) const {
  return *reinterpret_cast<Slot*>(column(index, 0));
}

std::atomic<std::uint64_t>& Ring::item(RingItem item) const {
  return reinterpret_cast<std::atomic<std::uint64_t>*>(column(item.slot, offsets_->items))[item.index];
}

std::optional<std::uint32_t> Ring::open(const BatchPlan& plan) {
  FORELOAD_CHECK(plan.count <= options_.batch, "a batch fits its slot");
  for (std::uint32_t index = 0; index < options_.slots; ++index) {
    Slot& free = slot(index);
    if (phase_of(free.state) != kFree) continue;
    free.number.store(plan.number, std::memory_order_relaxed);
    free.epoch = plan.epoch;
    free.step = plan.step;
    free.first = plan.first;
    free.count = plan.count;
    free.ready = 0;
    free.search_from = 0;
    free.waiting = free.unfinished = static_cast<std::uint32_t>(plan.count);
    free.bytes_complete = plan.count == 0 ? 0 : kBytesMissing;
    free.memory_bytes = free.disk_bytes = free.source_bytes = free.filled_bytes = 0;
    free.prep_busy = free.replaced = free.damaged = 0;
    free.failed_index = kNoFailure;
    auto* positions = reinterpret_cast<Position*>(column(index, offsets_->positions));
    for (std::uint32_t i = 0; i < plan.count; ++i) {
      item({index, i}).store(word(kWaiting), std::memory_order_relaxed);
      positions[i] = plan.first + i;
    }
    free.state.store(word(kOpen), std::memory_order_release);
    if (options_.ragged_element > 0) lengths(index)[0] = 0;
    if (plan.count == 0) publish(index);
    return index;
  }
  return std::nullopt;
}

void Ring::add_bytes(std::uint32_t index, const OriginBytes& bytes) {
  slot(index).memory_bytes.fetch_add(bytes.memory, std::memory_order_relaxed);
  slot(index).disk_bytes.fetch_add(bytes.disk, std::memory_order_relaxed);
  slot(index).source_bytes.fetch_add(bytes.source, std::memory_order_relaxed);
  slot(index).filled_bytes.fetch_add(bytes.filled, std::memory_order_relaxed);
}

void Ring::mark_ready(RingItem what, Time now) {
  Slot& of = slot(what.slot);
  item(what).store(word(kReady), std::memory_order_release);
  if (of.waiting.fetch_sub(1, std::memory_order_acq_rel) == 1) of.bytes_complete = now.count();
  of.ready.fetch_add(1, std::memory_order_release);
  header().work.fetch_add(1, std::memory_order_seq_cst);
  if (header().work_sleepers.load(std::memory_order_seq_cst) > 0) futex_wake_one(header().work);
}

std::optional<RingItem> Ring::claim() {
  for (;;) {
    std::array<PrepCandidate, kMostSlots> candidates;
    for (std::uint32_t i = 0; i < options_.slots; ++i) {
      const Slot& of = slot(i);
      const bool open = phase_of(of.state) == kOpen;
      candidates[i] = {i, of.number.load(std::memory_order_relaxed),
                       open ? of.ready.load(std::memory_order_acquire) : 0};
    }
    const auto chosen = soonest_needed({candidates.data(), options_.slots});
    if (!chosen) return std::nullopt;
    Slot& of = slot(*chosen);
    std::uint32_t ready = of.ready.load(std::memory_order_acquire);
    while (ready > 0 && !of.ready.compare_exchange_weak(ready, ready - 1, std::memory_order_acq_rel)) {
    }
    if (ready == 0) continue;
    for (std::uint32_t i = of.search_from.load(std::memory_order_relaxed);; i = (i + 1) % of.count) {
      if (i >= of.count) i = 0;
      std::uint64_t expected = word(kReady);
      if (!item({*chosen, i}).compare_exchange_strong(expected, word(kClaimed), std::memory_order_acq_rel)) continue;
      of.search_from.store(i + 1, std::memory_order_relaxed);
      return RingItem{*chosen, i};
    }
  }
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
  return wait({header().work, header().work_sleepers}, seen, until);
}
bool Ring::wait_for_batch(std::uint32_t seen) {
  return wait({header().published, header().published_sleepers}, seen, kNever);
}
unsigned Ring::sleeping_workers() const {
  return header().work_sleepers.load(std::memory_order_relaxed);
}
std::uint32_t Ring::work_signal() const {
  return header().work.load(std::memory_order_seq_cst);
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
  return {of.number.load(std::memory_order_relaxed), of.epoch, of.step, of.first, of.count};
}

std::span<std::byte> Ring::tensor(RingItem item) const {
  return {column(item.slot, offsets_->tensors) + item.index * options_.sample_bytes, options_.sample_bytes};
}

bool Ring::finish(RingItem what, const Prepared& prepared) {
  Slot& of = slot(what.slot);
  reinterpret_cast<SampleId*>(column(what.slot, offsets_->ids))[what.index] = prepared.id;
  reinterpret_cast<std::int64_t*>(column(what.slot, offsets_->labels))[what.index] = prepared.label;
  of.prep_busy.fetch_add(static_cast<std::uint64_t>(prepared.busy.count()), std::memory_order_relaxed);
  if (prepared.damaged) of.damaged.fetch_add(1, std::memory_order_relaxed);
  if (options_.ragged_element > 0) lengths(what.slot)[what.index + 1] = prepared.length;
  return done(what);
}

bool Ring::fail(RingItem what, const Error& error) {
  Slot& of = slot(what.slot);
  {
    MutexLock lock(errors_);
    if (what.index < of.failed_index) {  // the batch's first bad sample speaks, whichever was found first
      of.failed_index = what.index;
      of.failed_code = static_cast<std::uint32_t>(error.code);
      const std::size_t length = std::min(error.message.size(), kErrorText - 1);
      std::memcpy(of.error, error.message.data(), length);
      of.error[length] = '\0';
    }
  }
  return done(what);
}

void Ring::give_back(RingItem what) {
  Slot& of = slot(what.slot);
  of.bytes_complete = kBytesMissing;
  of.waiting.fetch_add(1, std::memory_order_acq_rel);
  of.replaced.fetch_add(1, std::memory_order_relaxed);
  item(what).store(word(kWaiting), std::memory_order_release);
}

bool Ring::done(RingItem what) {
  Slot& of = slot(what.slot);
  item(what).store(word(kDone), std::memory_order_relaxed);
  return of.unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

std::span<std::byte> Ring::tensors(std::uint32_t index) const {
  return {column(index, offsets_->tensors), slot(index).count * options_.sample_bytes};
}
std::span<std::uint64_t> Ring::lengths(std::uint32_t index) const {
  const std::size_t count = options_.ragged_element > 0 ? slot(index).count + 1 : 0;
  return {reinterpret_cast<std::uint64_t*>(column(index, offsets_->lengths)), count};
}
std::span<Mix> Ring::mixes(std::uint32_t index) const {
  return {reinterpret_cast<Mix*>(column(index, offsets_->mixes)), options_.mixes ? slot(index).count : 0};
}

void Ring::publish(std::uint32_t index, Duration busy) {
  Slot& full = slot(index);
  full.prep_busy.fetch_add(static_cast<std::uint64_t>(busy.count()), std::memory_order_relaxed);
  full.state.store(word(kPublished), std::memory_order_release);
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
  MutexLock lock(errors_);
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
  return {reinterpret_cast<const std::int64_t*>(column(index, offsets_->labels)), slot(index).count};
}
std::span<const SampleId> Ring::ids(std::uint32_t index) const {
  return {reinterpret_cast<const SampleId*>(column(index, offsets_->ids)), slot(index).count};
}
std::span<const Position> Ring::positions(std::uint32_t index) const {
  return {reinterpret_cast<const Position*>(column(index, offsets_->positions)), slot(index).count};
}

void Ring::stop() {
  header().stopped = 1;
  header().work.fetch_add(1);
  header().published.fetch_add(1);
  futex_wake_all(header().work);
  futex_wake_all(header().published);
}

bool Ring::stopped() const {
  return header().stopped.load() != 0;
}

void Ring::reset() {
  for (std::uint32_t i = 0; i < options_.slots; ++i) {
    if (phase_of(slot(i).state) != kLeased) slot(i).state.store(word(kFree), std::memory_order_release);
  }
  header().stopped = 0;
}

}  // namespace foreload
