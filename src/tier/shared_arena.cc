#include "tier/shared_arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/hash.h"

namespace foreload {
namespace {

constexpr std::uint64_t kMagic = 0x3330616e65724146;  // "FArena03"
constexpr Bytes kPage = 4096;

enum Phase : std::uint8_t { kAbsent = 0, kFlying = 1, kResident = 2 };

Bytes whole_pages(Bytes bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

// Of others' wants: they come some hundred at once, and are taken within a turn of a fetcher.
constexpr std::size_t kMostWanted = 1024;

struct SharedArena::Header {
  std::atomic<std::uint64_t> magic{0};  // written last
  std::uint64_t samples = 0;
  std::uint64_t end = 0;
  std::atomic<std::uint64_t> reserved{0};
  std::atomic<std::uint64_t> wanted{0};
  std::atomic<std::uint64_t> full{0};
  std::atomic<std::uint64_t> used{0};   // for display: a death between two stores leaves it a sample short
  std::atomic<std::uint32_t> wants{0};  // how many there may be
  std::array<std::atomic<std::uint64_t>, kMostWanted> wanted_ids{};  // id + 1; 0: none
};

struct SharedArena::Slot {
  std::atomic<std::uint64_t> word;
  std::atomic<std::uint64_t> offset;  // from the region's start; 0: no home
  std::atomic<std::uint64_t> hash;    // of what is resident
};

SlotCopy SlotCopy::parse(std::span<const std::byte, kBytes> bytes) {
  static_assert(sizeof(SharedArena::Slot) == kBytes);
  std::array<std::uint64_t, 3> words;
  std::memcpy(words.data(), bytes.data(), kBytes);
  return {.word = words[0], .offset = words[1], .hash = words[2]};
}

bool SlotCopy::is_resident() const {
  return ClaimWord::unpack(word).phase == kResident;
}

Bytes SharedArena::slot_offset(SampleId id) {
  return whole_pages(sizeof(Header)) + id * sizeof(Slot);
}

Bytes SharedArena::table_bytes(std::uint64_t samples) {
  return whole_pages(sizeof(Header)) + whole_pages(samples * sizeof(Slot));
}

Bytes SharedArena::region_bytes(const SharedArenaOptions& options) {
  return table_bytes(options.samples) + whole_pages(options.homes);
}

SharedArena::SharedArena(std::span<std::byte> memory, const SharedArenaOptions& options, MemberId self,
                         std::function<bool(MemberId)> is_alive)
    : memory_(memory), samples_(options.samples), end_(memory.size()), self_(self), is_alive_(std::move(is_alive)) {}

void SharedArena::format(std::span<std::byte> memory, const SharedArenaOptions& options,
                         const std::function<std::optional<SampleId>()>& next,
                         const std::function<Bytes(SampleId)>& length) {
  FORELOAD_CHECK(memory.size() == region_bytes(options), "the region is made for its homes");
  SharedArena arena(memory, options, {}, nullptr);
  Header* header = new (memory.data()) Header;
  header->samples = options.samples;
  Bytes offset = table_bytes(options.samples);
  header->reserved = offset;
  const Bytes end = offset + options.homes;
  while (const auto id = next()) {
    const Bytes room = footprint(length(*id));
    Slot& home = arena.slot(*id);
    if (room == 0 || room > end - offset || home.offset != 0) continue;
    home.offset = offset;
    offset += room;
  }
  header->wanted = header->reserved.load();
  header->end = offset;
  header->magic = kMagic;
}

Result<SharedArenaOptions> SharedArena::options_of(std::span<const std::byte> memory) {
  const Error none{Code::kInvalid, "what a member shares as its cache is none"};
  if (memory.size() < table_bytes(0)) return none;
  const Header& header = *reinterpret_cast<const Header*>(memory.data());
  const std::uint64_t samples = header.samples;
  if (header.magic != kMagic || samples > memory.size() / sizeof(Slot) || table_bytes(samples) > memory.size()) {
    return none;
  }
  return SharedArenaOptions{.samples = samples, .homes = memory.size() - table_bytes(samples)};
}

Result<std::unique_ptr<SharedArena>> SharedArena::open(std::span<std::byte> memory, const SharedArenaOptions& options,
                                                       MemberId self, std::function<bool(MemberId)> is_alive) {
  std::unique_ptr<SharedArena> arena(new SharedArena(memory, options, self, std::move(is_alive)));
  const bool fits = memory.size() == region_bytes(options) && arena->header().magic == kMagic &&
                    arena->header().samples == options.samples;
  if (!fits) return Error{Code::kInvalid, "the host's sample cache was made for another dataset"};
  arena->end_ = std::min<Bytes>(arena->header().end, memory.size());
  return arena;
}

SharedArena::Header& SharedArena::header() const {
  return *reinterpret_cast<Header*>(memory_.data());
}

SharedArena::Slot& SharedArena::slot(SampleId id) const {
  FORELOAD_CHECK(id < samples_, "ids are dense");
  return reinterpret_cast<Slot*>(memory_.data() + whole_pages(sizeof(Header)))[id];
}

std::span<std::byte> SharedArena::bytes_of(SampleId id, Bytes length) const {
  const Bytes offset = slot(id).offset.load(std::memory_order_relaxed);
  if (offset < table_bytes(samples_) || offset > end_ || length > end_ - offset) return {};
  return memory_.subspan(offset, length);
}

bool SharedArena::has_home(SampleId id) const {
  const Bytes offset = slot(id).offset.load(std::memory_order_relaxed);
  return offset != 0 && (offset < reserved() || header().full.load(std::memory_order_relaxed) == 0);
}

bool SharedArena::is_resident(SampleId id) const {
  return ClaimWord::unpack(slot(id).word.load(std::memory_order_acquire)).phase == kResident;
}

std::optional<Lease> SharedArena::lease(SampleId id, Bytes length) {
  if (!is_resident(id)) return std::nullopt;
  const std::span<std::byte> bytes = bytes_of(id, length);
  if (bytes.empty()) return std::nullopt;
  return Lease(this, id, bytes);
}

std::optional<std::uint64_t> SharedArena::hash(SampleId id) const {
  if (!is_resident(id)) return std::nullopt;
  return slot(id).hash.load(std::memory_order_relaxed);
}

SharedArena::Begun SharedArena::begin(SampleId id, Bytes length, std::span<std::byte>& into) {
  into = bytes_of(id, length);
  if (into.empty()) return Begun::kNoHome;
  const auto last = static_cast<Bytes>(into.data() - memory_.data()) + length;
  if (last > reserved()) {
    if (header().full.load(std::memory_order_relaxed) != 0) return Begun::kNoHome;
    std::uint64_t wanted = header().wanted.load();
    while (wanted < last && !header().wanted.compare_exchange_weak(wanted, last)) {
    }
    if (wanted < last && on_wanted_) on_wanted_();
    return Begun::kNotYet;
  }
  Slot& home = slot(id);
  std::uint64_t seen = home.word.load(std::memory_order_acquire);
  const ClaimWord before = ClaimWord::unpack(seen);
  if (before.phase == kResident) return Begun::kElsewhere;  // it has just landed
  if (before.phase == kFlying && is_alive_(before.owner())) return Begun::kElsewhere;
  // Absent, or left behind by the dead, who write no more.
  const ClaimWord mine{.phase = kFlying,
                       .member = self_.index,
                       .member_generation = self_.generation,
                       .generation = static_cast<std::uint16_t>(before.generation + 1)};
  return home.word.compare_exchange_strong(seen, mine.packed(), std::memory_order_acq_rel) ? Begun::kMine
                                                                                           : Begun::kElsewhere;
}

Lease SharedArena::commit(SampleId id, Bytes length) {
  Slot& home = slot(id);
  const std::span<const std::byte> bytes = bytes_of(id, length);
  home.hash.store(hash_bytes(bytes), std::memory_order_relaxed);
  ClaimWord word = ClaimWord::unpack(home.word.load(std::memory_order_relaxed));
  word.phase = kResident;
  home.word.store(word.packed(), std::memory_order_release);
  header().used.fetch_add(footprint(length), std::memory_order_relaxed);
  return Lease(this, id, bytes);
}

void SharedArena::abandon(SampleId id) {
  Slot& home = slot(id);
  ClaimWord word = ClaimWord::unpack(home.word.load(std::memory_order_relaxed));
  word.phase = kAbsent;
  home.word.store(word.packed(), std::memory_order_release);
}

bool SharedArena::want(SampleId id) {
  if (id >= samples_ || !has_home(id)) return false;
  const std::uint64_t wanted = id + 1;
  for (auto& entry : header().wanted_ids) {
    if (entry.load(std::memory_order_relaxed) == wanted) return false;
  }
  // Twice on the list is twice looked at, no more; and so is a count that is too large, because somebody died here.
  header().wants.fetch_add(1);
  for (auto& entry : header().wanted_ids) {
    std::uint64_t none = 0;
    if (entry.load(std::memory_order_relaxed) == 0 && entry.compare_exchange_strong(none, wanted)) return true;
  }
  header().wants.fetch_sub(1);
  return false;
}

std::optional<SampleId> SharedArena::take_wanted() {
  if (header().wants.load(std::memory_order_relaxed) == 0) return std::nullopt;
  for (auto& entry : header().wanted_ids) {
    std::uint64_t seen = entry.load(std::memory_order_relaxed);
    if (seen == 0 || !entry.compare_exchange_strong(seen, 0)) continue;
    header().wants.fetch_sub(1);
    if (seen <= samples_) return seen - 1;
  }
  return std::nullopt;
}

Bytes SharedArena::reserved() const {
  return std::min<Bytes>(header().reserved.load(std::memory_order_acquire), memory_.size());
}
Bytes SharedArena::wanted() const {
  return std::min<Bytes>(header().wanted.load(std::memory_order_relaxed), memory_.size());
}
void SharedArena::end_growth() {
  header().full.store(1, std::memory_order_relaxed);
}
Bytes SharedArena::used() const {
  return header().used.load(std::memory_order_relaxed);
}

void SharedArena::reserved_to(Bytes end) {
  std::uint64_t before = header().reserved.load();
  while (before < end && !header().reserved.compare_exchange_weak(before, end)) {
  }
}

}  // namespace foreload
