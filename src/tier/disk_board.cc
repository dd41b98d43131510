// A slot's first word says on which seat's disk the sample is at home, on which it is, and where:
//
//   [ home + 1: 8 bits ][ holder + 1: 8 bits ][ offset: 48 bits ]
//
// and its second word is the hash. They are two stores, so a reader may see one of two lives: then the bytes do not
// have that hash, and it is as if there were none.
#include "tier/disk_board.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>

#include "base/check.h"

namespace foreload {
namespace {

constexpr std::uint64_t kMagic = 0x31306472616f4244;  // "DBoard01"
constexpr Bytes kPage = 4096;
constexpr std::size_t kMostWanted = 512;  // of a seat: they come some hundred at once, and are taken within a turn
constexpr std::size_t kLongestPath = 1024;
constexpr unsigned kOffsetBits = 48;
constexpr Duration kBeginning = std::chrono::seconds(30);  // in which all learners of a host sit down

enum Phase : std::uint8_t { kNobody = 0, kTakes = 1, kHasOnly = 2 };

Bytes whole_pages(Bytes bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kOffsetBits) - 1;
constexpr std::uint64_t kHomeMask = std::uint64_t{0xff} << 56;

std::uint64_t pack(std::uint64_t home, std::uint32_t holder, Bytes offset) {
  return home | std::uint64_t{holder + 1} << kOffsetBits | offset;
}

}  // namespace

struct DiskBoard::Header {
  std::atomic<std::uint64_t> magic{0};  // written last
  std::uint64_t samples = 0;
  std::uint64_t seats = 0;
  std::int64_t made = 0;
};

struct DiskBoard::SeatEntry {
  std::atomic<std::uint64_t> word{0};  // ClaimWord of who has it
  std::atomic<std::uint32_t> life{0};
  std::atomic<std::uint32_t> wants{0};  // how many there may be
  std::array<std::atomic<std::uint64_t>, kMostWanted> wanted{};
  std::array<std::atomic<char>, kLongestPath> folder{};  // ends with a zero
};

struct DiskBoard::Slot {
  std::atomic<std::uint64_t> place;
  std::atomic<std::uint64_t> hash;
};

Bytes DiskBoard::region_bytes(std::uint64_t samples, std::uint32_t seats) {
  return kPage + whole_pages(seats * sizeof(SeatEntry)) + whole_pages(samples * sizeof(Slot));
}

void DiskBoard::format(std::span<std::byte> memory, std::uint64_t samples, std::uint32_t seats, Time now,
                       const std::function<std::optional<Seat>(SampleId)>& home) {
  FORELOAD_CHECK(memory.size() == region_bytes(samples, seats) && seats > 0 && seats <= kMostSeats,
                 "the region is made for its samples and seats");
  const DiskBoard board(memory, samples, seats, nullptr);
  Header* header = new (memory.data()) Header;
  header->samples = samples;
  header->seats = seats;
  header->made = now.count();
  for (Seat seat = 0; seat < seats; ++seat) new (&board.entry(seat)) SeatEntry;
  for (SampleId id = 0; id < samples; ++id) {
    if (const auto seat = home(id)) board.slot(id).place = std::uint64_t{*seat + 1} << 56;
  }
  header->magic = kMagic;
}

Result<DiskBoard> DiskBoard::open(std::span<std::byte> memory, std::function<bool(MemberId)> is_alive) {
  const Error none{Code::kInvalid, "what a member shares as the list of its host's disks is none"};
  if (memory.size() < region_bytes(0, 1)) return none;
  const Header& header = *reinterpret_cast<const Header*>(memory.data());
  const std::uint64_t samples = header.samples;
  const std::uint64_t seats = header.seats;
  if (header.magic != kMagic || seats == 0 || seats > kMostSeats || samples > memory.size() / sizeof(Slot)) return none;
  if (region_bytes(samples, static_cast<std::uint32_t>(seats)) != memory.size()) return none;
  return DiskBoard(memory, samples, static_cast<std::uint32_t>(seats), std::move(is_alive));
}

DiskBoard::Header& DiskBoard::header() const {
  return *reinterpret_cast<Header*>(memory_.data());
}

DiskBoard::SeatEntry& DiskBoard::entry(Seat seat) const {
  FORELOAD_CHECK(seat < seats_, "a seat of the board");
  return reinterpret_cast<SeatEntry*>(memory_.data() + kPage)[seat];
}

DiskBoard::Slot& DiskBoard::slot(SampleId id) const {
  FORELOAD_CHECK(id < samples_, "ids are dense");
  const Bytes table = kPage + whole_pages(seats_ * sizeof(SeatEntry));
  return reinterpret_cast<Slot*>(memory_.data() + table)[id];
}

bool DiskBoard::sit(Seat seat, MemberId self, const std::string& folder) {
  SeatEntry& own = entry(seat);
  const ClaimWord before = ClaimWord::unpack(own.word.load());
  // Another loader with the same seat has its cache.
  if (folder.empty() && before.phase != kNobody && is_alive_(before.owner())) return false;
  own.word = 0;
  for (SampleId id = 0; id < samples_; ++id) remove(id, seat);
  const bool fits = folder.size() < kLongestPath;
  const std::size_t length = fits ? folder.size() : 0;
  for (std::size_t i = 0; i <= length; ++i) own.folder[i] = i < length ? folder[i] : '\0';
  ++own.life;
  own.word = ClaimWord{.phase = static_cast<std::uint8_t>(length > 0 ? kTakes : kHasOnly),
                       .member = self.index,
                       .member_generation = self.generation}
                 .packed();
  return true;
}

void DiskBoard::stop_taking(Seat seat) {
  ClaimWord word = ClaimWord::unpack(entry(seat).word.load());
  word.phase = kHasOnly;
  entry(seat).word = word.packed();
}

std::string DiskBoard::folder(Seat seat, std::uint32_t& life) const {
  const SeatEntry& theirs = entry(seat);
  life = theirs.life.load(std::memory_order_acquire);
  std::string path;
  for (const auto& letter : theirs.folder) {
    if (letter == '\0' || path.size() + 1 == kLongestPath) break;
    path += letter;
  }
  return path;
}

std::optional<DiskBoard::Seat> DiskBoard::home(SampleId id) const {
  const std::uint64_t home = slot(id).place.load(std::memory_order_relaxed) >> 56;
  return home == 0 || home > seats_ ? std::nullopt : std::optional(static_cast<Seat>(home - 1));
}

std::optional<DiskBoard::Place> DiskBoard::find(SampleId id) const {
  const std::uint64_t place = slot(id).place.load(std::memory_order_acquire);
  const std::uint64_t holder = place >> kOffsetBits & 0xff;
  if (holder == 0 || holder > seats_) return std::nullopt;
  return Place{.seat = static_cast<Seat>(holder - 1),
               .offset = place & kOffsetMask,
               .hash = slot(id).hash.load(std::memory_order_relaxed)};
}

void DiskBoard::add(SampleId id, const Place& place) {
  if (place.offset > kOffsetMask) return;
  Slot& there = slot(id);
  there.hash.store(place.hash, std::memory_order_relaxed);
  const std::uint64_t home = there.place.load(std::memory_order_relaxed) & kHomeMask;
  there.place.store(pack(home, place.seat, place.offset), std::memory_order_release);
}

void DiskBoard::remove(SampleId id, Seat seat) {
  std::uint64_t seen = slot(id).place.load(std::memory_order_relaxed);
  while ((seen >> kOffsetBits & 0xff) == seat + 1 && !slot(id).place.compare_exchange_weak(seen, seen & kHomeMask)) {
  }
}

void DiskBoard::doubt(SampleId id, const Place& place) {
  std::uint64_t seen = slot(id).place.load(std::memory_order_relaxed);
  const bool same = place.seat < seats_ && seen == pack(seen & kHomeMask, place.seat, place.offset);
  if (same && slot(id).place.compare_exchange_strong(seen, seen & kHomeMask)) list(entry(place.seat), id);
}

bool DiskBoard::want(SampleId id, Time now) {
  const auto seat = home(id);
  if (!seat) return false;
  const ClaimWord word = ClaimWord::unpack(entry(*seat).word.load(std::memory_order_acquire));
  // Nobody sits there yet, but somebody may soon.
  if (word.phase == kNobody) return now - Time{header().made} < kBeginning;
  if (word.phase != kTakes || !is_alive_(word.owner())) return false;
  list(entry(*seat), id);
  return true;
}

// A full list is no harm: who wants something asks again.
void DiskBoard::list(SeatEntry& seat, SampleId id) {
  const std::uint64_t wanted = id + 1;
  for (const auto& there : seat.wanted) {
    if (there.load(std::memory_order_relaxed) == wanted) return;
  }
  seat.wants.fetch_add(1);
  for (auto& there : seat.wanted) {
    std::uint64_t none = 0;
    if (there.load(std::memory_order_relaxed) == 0 && there.compare_exchange_strong(none, wanted)) return;
  }
  seat.wants.fetch_sub(1);
}

std::optional<SampleId> DiskBoard::take_wanted(Seat seat) {
  SeatEntry& own = entry(seat);
  if (!has_wanted(seat)) return std::nullopt;
  for (auto& there : own.wanted) {
    std::uint64_t seen = there.load(std::memory_order_relaxed);
    if (seen == 0 || !there.compare_exchange_strong(seen, 0)) continue;
    own.wants.fetch_sub(1);
    if (seen <= samples_) return seen - 1;
  }
  return std::nullopt;
}

bool DiskBoard::has_wanted(Seat seat) const {
  return entry(seat).wants.load(std::memory_order_relaxed) != 0;
}

std::shared_ptr<const Descriptor> DiskBoardFiles::file(const DiskBoard& board, DiskBoard::Seat seat) {
  std::uint32_t life = 0;
  const std::string folder = board.folder(seat, life);
  if (folder.empty()) return nullptr;
  MutexLock lock(mutex_);
  Opened& known = opened_[seat];
  if (known.file != nullptr && known.life == life) return known.file;
  const auto directory = open_directory(folder);
  if (!directory.ok()) return nullptr;
  auto file = open_below(directory->get(), "data");
  if (!file.ok()) return nullptr;
  known = {life, std::make_shared<const Descriptor>(std::move(*file))};
  return known.file;
}

}  // namespace foreload
