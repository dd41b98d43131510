// Leases are counted in the slot's word, so a hit is one compare-and-swap and no lock. The lock guards the extents
// only; they could be rebuilt from the slot table at any time, which is what a shared arena does after a crash.
#include "tier/arena.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <new>

#include "base/check.h"

namespace foreload {
namespace {

enum Phase : std::uint8_t {
  kAbsent = 0,
  kFlying = 1,
  kChanging = 2,
  kResidentHome = 3,  // from here on: can be leased
  kResidentTransit = 4,
  kResidentUrgent = 5,
  kResidentOnward = 6,
  kResidentChanged = 7,  // at home, and as long as its room
};

constexpr Bytes kPage = 4096;

Bytes whole_pages(Bytes bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

// A range that is too small for a single stretch is left out.
Bytes range_bytes(Bytes usable) {
  return usable == 0 ? 0 : whole_pages(usable + Extents::overhead() + 64);
}

Phase resident_phase(Area area) {
  return static_cast<Phase>(kResidentHome + static_cast<int>(area));
}
Area area_of(std::uint8_t phase) {
  return static_cast<Area>(phase - kResidentHome);
}

}  // namespace

Bytes Arena::overhead(std::uint64_t samples) {
  return whole_pages(samples * sizeof(Slot)) + kAreas * range_bytes(1);
}

Arena::Arena(Region region, const ArenaOptions& options)
    : region_(std::move(region)), samples_(options.samples), growth_(options.growth) {}

Bytes Arena::region_bytes(const ArenaOptions& options) {
  return whole_pages(options.samples * sizeof(Slot)) + range_bytes(options.home) + range_bytes(options.transit) +
         range_bytes(options.urgent) + range_bytes(options.onward) + kPage;
}

Result<std::unique_ptr<Arena>> Arena::create(const ArenaOptions& options) {
  FORELOAD_ASSIGN(Region region, Region::map(region_bytes(options), "the sample cache"));
  return create(options, std::move(region));
}

std::unique_ptr<Arena> Arena::create(const ArenaOptions& options, Region region) {
  const std::array<Bytes, kAreas> sizes = {range_bytes(options.home), range_bytes(options.transit),
                                           range_bytes(options.urgent), range_bytes(options.onward)};
  std::unique_ptr<Arena> arena(new Arena(std::move(region), options));
  std::uint64_t start = whole_pages(options.samples * sizeof(Slot));
  MutexLock lock(arena->mutex_);
  for (std::size_t area = 0; area < sizes.size(); ++area) {
    if (sizes[area] != 0) {
      auto bytes = arena->region_.bytes().subspan(start, sizes[area]);
      arena->ranges_[area].emplace(Range{start, Extents::format(bytes)});
    }
    start += sizes[area];
  }
  return arena;
}

// Fresh anonymous memory is zero, and a zero word means absent: the table needs no initialisation.
Arena::Slot& Arena::slot(SampleId id) const {
  FORELOAD_CHECK(id < samples_, "ids are dense");
  return reinterpret_cast<Slot*>(region_.bytes().data())[id];
}

std::optional<Arena::Range>& Arena::range(Area area) {
  return ranges_[static_cast<int>(area)];
}

bool Arena::acquire(SampleId id, std::uint8_t& phase) {
  Slot& sample = slot(id);
  std::uint64_t seen = sample.word.load(std::memory_order_acquire);
  for (;;) {
    ClaimWord word = ClaimWord::unpack(seen);
    phase = word.phase;
    if (phase < kResidentHome) return false;
    FORELOAD_CHECK(word.count < std::numeric_limits<std::uint16_t>::max(), "look-ahead bounds the leases of a sample");
    ++word.count;
    if (sample.word.compare_exchange_weak(seen, word.packed(), std::memory_order_acquire)) return true;
  }
}

std::optional<Lease> Arena::lease(SampleId id, Bytes length) {
  std::uint8_t phase = 0;
  if (ClaimWord::unpack(slot(id).word.load(std::memory_order_relaxed)).count >= kMostLeases) return std::nullopt;
  if (!acquire(id, phase)) return std::nullopt;
  const std::uint64_t offset = slot(id).offset.load(std::memory_order_relaxed);
  const Bytes bytes = phase == kResidentChanged ? room(length) : length;
  return Lease(this, id, region_.bytes().subspan(offset, bytes));
}

void Arena::add(SampleId id) {
  std::uint8_t phase = 0;
  FORELOAD_CHECK(acquire(id, phase), "a leased sample is resident");
}

std::uint8_t Arena::phase(SampleId id) const {
  return ClaimWord::unpack(slot(id).word.load(std::memory_order_acquire)).phase;
}

bool Arena::is_flying(SampleId id) const {
  return phase(id) == kFlying;
}

std::span<std::byte> Arena::writable(const Lease& lease) {
  return {const_cast<std::byte*>(lease.bytes().data()), lease.bytes().size()};
}

bool Arena::is_absent(SampleId id) const {
  return phase(id) == kAbsent;
}

bool Arena::is_home(SampleId id) const {
  return phase(id) == kResidentHome;
}

bool Arena::is_transit(SampleId id) const {
  return phase(id) == kResidentTransit;
}

bool Arena::is_in(SampleId id, Area area) const {
  const ClaimWord word = ClaimWord::unpack(slot(id).word.load(std::memory_order_acquire));
  return word.phase == resident_phase(area) ||
         (word.phase == kFlying && word.count == static_cast<std::uint16_t>(area));
}

std::optional<std::span<std::byte>> Arena::begin(SampleId id, Bytes length, Area area) {
  Slot& sample = slot(id);
  ClaimWord word = ClaimWord::unpack(sample.word.load(std::memory_order_acquire));
  FORELOAD_CHECK(word.phase == kAbsent, "one flight per sample");
  std::uint64_t offset = 0;
  {
    MutexLock lock(mutex_);
    auto& into = range(area);
    const Bytes taken = area == Area::kHome ? room(length) : length;
    const auto found = into ? into->extents.allocate(taken) : std::nullopt;
    if (!found) return std::nullopt;
    offset = into->start + *found;
  }
  sample.offset.store(offset, std::memory_order_relaxed);
  word.phase = kFlying;
  word.count = static_cast<std::uint16_t>(area);  // nobody leases a flying sample: the count says where it will live
  sample.word.store(word.packed(), std::memory_order_release);
  return region_.bytes().subspan(offset, length);
}

Lease Arena::commit(SampleId id, Bytes length) {
  Slot& sample = slot(id);
  ClaimWord word = ClaimWord::unpack(sample.word.load(std::memory_order_relaxed));
  FORELOAD_CHECK(word.phase == kFlying, "only a flying sample lands");
  word.phase = resident_phase(static_cast<Area>(word.count));
  word.count = 1;
  sample.word.store(word.packed(), std::memory_order_release);
  return Lease(this, id, region_.bytes().subspan(sample.offset.load(std::memory_order_relaxed), length));
}

void Arena::abandon(SampleId id) {
  Slot& sample = slot(id);
  ClaimWord word = ClaimWord::unpack(sample.word.load(std::memory_order_relaxed));
  FORELOAD_CHECK(word.phase == kFlying, "only a flight is abandoned");
  const auto area = static_cast<Area>(word.count);
  const std::uint64_t offset = sample.offset.load(std::memory_order_relaxed);
  word = {.generation = static_cast<std::uint16_t>(word.generation + 1)};
  sample.word.store(word.packed(), std::memory_order_release);
  free_extent(area, offset);
}

bool Arena::evict(SampleId id) {
  Slot& sample = slot(id);
  std::uint64_t seen = sample.word.load(std::memory_order_relaxed);
  const ClaimWord word = ClaimWord::unpack(seen);
  if ((word.phase != kResidentHome && word.phase != kResidentChanged) || word.count != 0) return false;
  const ClaimWord gone{.generation = static_cast<std::uint16_t>(word.generation + 1)};
  if (!sample.word.compare_exchange_strong(seen, gone.packed(), std::memory_order_acquire)) return false;
  free_extent(Area::kHome, sample.offset.load(std::memory_order_relaxed));
  return true;
}

std::optional<std::span<std::byte>> Arena::begin_change(SampleId id, Bytes length) {
  Slot& sample = slot(id);
  std::uint64_t seen = sample.word.load(std::memory_order_relaxed);
  ClaimWord word = ClaimWord::unpack(seen);
  if (word.phase != kResidentHome || word.count != 0) return std::nullopt;
  word.phase = kChanging;
  if (!sample.word.compare_exchange_strong(seen, word.packed(), std::memory_order_acquire)) return std::nullopt;
  return region_.bytes().subspan(sample.offset.load(std::memory_order_relaxed), room(length));
}

void Arena::end_change(SampleId id) {
  Slot& sample = slot(id);
  ClaimWord word = ClaimWord::unpack(sample.word.load(std::memory_order_relaxed));
  FORELOAD_CHECK(word.phase == kChanging, "a change ends once");
  word.phase = kResidentChanged;
  sample.word.store(word.packed(), std::memory_order_release);
}

void Arena::drop(SampleId id) {
  Slot& sample = slot(id);
  const std::uint64_t offset = sample.offset.load(std::memory_order_relaxed);
  std::uint64_t seen = sample.word.load(std::memory_order_relaxed);
  ClaimWord before;
  ClaimWord after;
  do {
    before = after = ClaimWord::unpack(seen);
    --after.count;
    if (after.count == 0 && before.phase >= kResidentTransit && before.phase <= kResidentOnward) {
      after = {.generation = static_cast<std::uint16_t>(before.generation + 1)};
    }
  } while (!sample.word.compare_exchange_weak(seen, after.packed(), std::memory_order_acq_rel));
  if (after.phase == kAbsent) free_extent(area_of(before.phase), offset);
}

void Arena::free_extent(Area area, std::uint64_t offset) {
  MutexLock lock(mutex_);
  auto& from = range(area);
  from->extents.free(offset - from->start);
}

Bytes Arena::home_used() const {
  MutexLock lock(mutex_);
  const auto& home = ranges_[static_cast<int>(Area::kHome)];
  return home ? home->extents.used_bytes() : 0;
}

}  // namespace foreload
