// An entry goes free → asked → taken → ended → free. The asking side frees it when it has seen the end, when the member
// that took it is dead, or when nobody took it in time; while it is taken by the living it stays, and so does its room.
#include "tier/peer_desk.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"

namespace foreload {
namespace {

enum Phase : std::uint8_t { kFree = 0, kAsked = 1, kTaken = 2, kEnded = 3, kEndedEmpty = 4, kEndedCut = 5 };

constexpr Bytes kAlign = 64;

Bytes aligned(Bytes bytes) {
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

std::uint64_t box_of(const PeerCrop& crop) {
  return std::uint64_t{crop.x} << 48 | std::uint64_t{crop.y} << 32 | std::uint64_t{crop.width} << 16 | crop.height;
}

std::uint32_t picture_of(const PeerCrop& crop) {
  return std::uint32_t{crop.picture_width} << 16 | crop.picture_height;
}

PeerCrop crop_of(std::uint32_t picture, std::uint64_t box) {
  const auto part = [](std::uint64_t from, unsigned shift) { return static_cast<std::uint16_t>(from >> shift); };
  return {.picture_width = part(picture, 16),
          .picture_height = part(picture, 0),
          .x = part(box, 48),
          .y = part(box, 32),
          .width = part(box, 16),
          .height = part(box, 0)};
}

}  // namespace

struct alignas(64) PeerDesk::Entry {
  std::atomic<std::uint64_t> word;
  std::atomic<std::uint64_t> id;
  std::atomic<std::uint64_t> offset;  // in the room
  std::atomic<std::uint64_t> length;
  std::atomic<std::uint64_t> came;  // after kEndedCut: the length of what came instead
  std::atomic<std::uint64_t> box;   // of the crop: four of its numbers
  std::atomic<std::uint32_t> picture;
  std::atomic<std::uint32_t> host;
};

Bytes PeerDesk::entries_bytes() {
  return kEntries * sizeof(Entry);
}

Bytes PeerDesk::region_bytes(Bytes room) {
  return entries_bytes() + aligned(room);
}

PeerDesk::Entry& PeerDesk::entry(unsigned index) const {
  return reinterpret_cast<Entry*>(memory_.data())[index];
}

void PeerDesk::begin(std::function<bool(MemberId)> is_alive) {
  is_alive_ = std::move(is_alive);
}

Bytes PeerDesk::longest() const {
  return room().size() / 2;  // or what is at the end of the room would be lost to most
}

// Where in the room, counted on over its end.
std::optional<std::uint64_t> PeerDesk::place_for(Bytes length) const {
  const Bytes size = room().size();
  if (next_ - first_ == kEntries) return std::nullopt;
  const Bytes left = size - end_ % size;  // before the room's end
  const std::uint64_t start = aligned(length) <= left ? end_ : end_ + left;
  const std::uint64_t oldest = first_ == next_ ? start : opens_[first_ % kEntries].start;
  return start + aligned(length) - oldest > size ? std::nullopt : std::optional(start);
}

bool PeerDesk::ask(SampleId id, std::uint32_t host, Bytes length, Time now, const PeerCrop& crop) {
  FORELOAD_CHECK(length > 0 && length <= longest(), "longer samples are not asked for");
  const auto place = place_for(length);
  if (!place) return false;
  const std::uint64_t start = *place;
  opens_[next_ % kEntries] = {
      .id = id, .start = start, .length = length, .since = now, .waited_for = true, .crops = crop.is_wanted()};
  Entry& asked = entry(static_cast<unsigned>(next_ % kEntries));
  asked.id.store(id, std::memory_order_relaxed);
  asked.host.store(host, std::memory_order_relaxed);
  asked.offset.store(start % room().size(), std::memory_order_relaxed);
  asked.length.store(length, std::memory_order_relaxed);
  asked.picture.store(picture_of(crop), std::memory_order_relaxed);
  asked.box.store(box_of(crop), std::memory_order_relaxed);
  ClaimWord word = ClaimWord::unpack(asked.word.load(std::memory_order_relaxed));
  word = {.phase = kAsked, .generation = static_cast<std::uint16_t>(word.generation + 1)};
  asked.word.store(word.packed(), std::memory_order_release);
  end_ = start + aligned(length);
  ++next_;
  ++open_;
  return true;
}

// True: its entry is free, and its room.
bool PeerDesk::look_at(std::uint64_t number, Time now, const std::function<void(const End&)>& use) {
  Open& mine = opens_[number % kEntries];
  Entry& asked = entry(static_cast<unsigned>(number % kEntries));
  std::uint64_t seen = asked.word.load(std::memory_order_acquire);
  ClaimWord word = ClaimWord::unpack(seen);
  const Bytes came = word.phase == kEndedCut ? asked.came.load(std::memory_order_relaxed) : mine.length;
  const bool late = now - mine.since >= kPatience;
  ClaimWord none = word;
  none.phase = kFree;
  // Who took it meanwhile may be about to write.
  bool over = word.phase != kAsked && (word.phase != kTaken || !is_alive_(word.owner()));
  if (word.phase == kAsked && late) {
    over = asked.word.compare_exchange_strong(seen, none.packed());
  } else if (over) {
    asked.word.store(none.packed(), std::memory_order_relaxed);
  }
  if (mine.waited_for && (over || late)) {
    mine.waited_for = false;
    --open_;
    note(over && !(word.phase == kAsked), now);
    End end{.id = mine.id, .took = now - mine.since};
    end.is_cut = word.phase == kEndedCut;
    const bool fits = !end.is_cut || (mine.crops && came > 0 && came < mine.length);
    if (fits && (word.phase == kEnded || end.is_cut)) end.bytes = room().subspan(mine.start % room().size(), came);
    use(end);
  }
  return over;
}

// Requests that were under way together fail together: that is one failure.
void PeerDesk::note(bool in_time, Time now) {
  if (in_time) {
    rest_ = {};
    rest_until_ = {};
  } else if (now >= rest_until_) {
    rest_ = std::clamp(2 * rest_, kPatience, kLongestRest);
    rest_until_ = now + rest_;
  }
}

void PeerDesk::take(Time now, const std::function<void(const End&)>& use) {
  for (std::uint64_t number = first_; number != next_; ++number) {
    const bool is_free = opens_[number % kEntries].length == 0 || look_at(number, now, use);
    if (is_free) opens_[number % kEntries].length = 0;
    if (is_free && number == first_) ++first_;
  }
  rests_ = now < rest_until_;
}

void PeerDesk::give_up() {
  for (Open& open : opens_) open.waited_for = false;
  open_ = 0;
}

Time PeerDesk::next_deadline() const {
  for (std::uint64_t number = first_; number != next_; ++number) {
    const Open& open = opens_[number % kEntries];
    if (open.length > 0 && open.waited_for) return open.since + kPatience;
  }
  return Time::max();
}

std::optional<PeerDesk::Asked> PeerDesk::claim(MemberId self) {
  for (unsigned i = 0; i < kEntries; ++i) {
    const unsigned index = (cursor_ + i) % kEntries;
    Entry& asked = entry(index);
    std::uint64_t seen = asked.word.load(std::memory_order_acquire);
    ClaimWord word = ClaimWord::unpack(seen);
    if (word.phase != kAsked) continue;
    const std::uint64_t offset = asked.offset.load(std::memory_order_relaxed);
    const std::uint64_t length = asked.length.load(std::memory_order_relaxed);
    Asked mine{
        .index = index,
        .id = asked.id.load(std::memory_order_relaxed),
        .host = asked.host.load(std::memory_order_relaxed),
        .crop = crop_of(asked.picture.load(std::memory_order_relaxed), asked.box.load(std::memory_order_relaxed))};
    word.phase = kTaken;
    word.member = self.index;
    word.member_generation = self.generation;
    if (!asked.word.compare_exchange_strong(seen, word.packed(), std::memory_order_acq_rel)) continue;
    cursor_ = (index + 1) % kEntries;
    mine.word = word.packed();
    const std::span<std::byte> all = room();
    const bool fits = length > 0 && offset <= all.size() && length <= all.size() - offset && mine.crop.is_sound();
    if (fits) mine.into = all.subspan(offset, length);
    if (fits) return mine;
    end(mine, false);  // whoever wrote that is not to be helped
  }
  return std::nullopt;
}

void PeerDesk::end(const Asked& asked, bool here, Bytes cut) {
  ClaimWord word = ClaimWord::unpack(asked.word);
  word.phase = here ? kEnded : kEndedEmpty;
  if (here && cut > 0) {
    word.phase = kEndedCut;
    entry(asked.index).came.store(cut, std::memory_order_relaxed);
  }
  // A word that is not its own any more was written by somebody who breaks the rules.
  std::uint64_t seen = asked.word;
  entry(asked.index).word.compare_exchange_strong(seen, word.packed(), std::memory_order_acq_rel);
}

}  // namespace foreload
