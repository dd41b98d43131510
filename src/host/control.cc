// A member's place:  empty → alive → empty, generation + 1 each time it is taken. Byte i of the file is locked by the
// process at place i: alive means word and lock. Word without lock means dead: its claims are taken back by whoever
// sees it, and then the place is empty.
// An object:  free → ready → (dropped →) free, generation + 1 each time. It ends when nobody holds its memory.
#include "host/control.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <new>

#include "base/check.h"
#include "base/clock.h"
#include "base/futex.h"
#include "base/record_lock.h"
#include "base/text.h"
#include "host/control_layout.h"

namespace foreload {
namespace {

constexpr Duration kLockLook = std::chrono::milliseconds(20);

enum MemberPhase : std::uint8_t { kEmpty = 0, kAlive = 1 };
enum ObjectPhase : std::uint8_t { kFree = 0, kReady = 1, kDropped = 2 };

// A member's share in an object: which life of the member, whether it uses it. 0: none.
std::uint32_t share_of(MemberId member, bool use) {
  return std::uint32_t{member.generation} << 2 | (use ? 2u : 0u) | 1u;
}
bool is_share_of(std::uint32_t share, MemberId member) {
  return (share & ~2u) == share_of(member, false);
}

}  // namespace

// Taken from the dead at once; a holder that was stopped is waited for, up to kPatience.
class Control::Lock {
 public:
  explicit Lock(const Control& control) : control_(control) {
    FORELOAD_CHECK(control.self_.has_value(), "members take the lock");
    const std::uint64_t mine =
        ClaimWord{.phase = 1, .member = control.self_->index, .member_generation = control.self_->generation}.packed();
    const Time give_up = now() + kPatience;
    for (;;) {
      std::uint64_t seen = 0;
      const std::uint32_t signal = block().lock_signal.load();
      if (block().lock.compare_exchange_strong(seen, mine)) break;
      const ClaimWord holder = ClaimWord::unpack(seen);
      const bool gone = !control.is_alive(holder.owner());
      if (gone && block().lock.compare_exchange_strong(seen, mine)) break;
      if (now() >= give_up) return;
      if (!gone) futex_wait(block().lock_signal, signal, now() + kLockLook);
    }
    held_ = true;
  }
  ~Lock() {
    if (!held_) return;
    block().lock.store(0);
    block().lock_signal.fetch_add(1);
    futex_wake_one(block().lock_signal);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  Status held() const {
    if (held_) return {};
    const unsigned holder = ClaimWord::unpack(block().lock.load()).member % kMostMembers;
    return Error{Code::kIo, fmt::format("process {} of this host holds its lock and does not run: continue it "
                                        "(SIGCONT) or end it",
                                        block().members[holder].process.load())};
  }

 private:
  Block& block() const { return control_.block(); }
  const Control& control_;
  bool held_ = false;
};

Bytes Control::region_bytes() {
  return sizeof(Block);
}

Control::Block& Control::block() const {
  return *reinterpret_cast<Block*>(memory_->bytes().data());
}

Result<Control> Control::create(Bytes budget, unsigned cores) {
  FORELOAD_ASSIGN(SharedMemory memory, SharedMemory::create(region_bytes(), "the host's control block"));
  FORELOAD_TRY(memory.reserve(0, region_bytes()));
  Block* block = new (memory.bytes().data()) Block;
  block->size = region_bytes();
  block->budget = budget;
  block->cores = std::clamp(cores, 1u, kMostCores);
  return Control(std::make_shared<const SharedMemory>(std::move(memory)));
}

Result<Control> Control::adopt(Descriptor file) {
  FORELOAD_ASSIGN(SharedMemory memory,
                  SharedMemory::adopt(std::move(file), region_bytes(), "the host's control block"));
  Control control(std::make_shared<const SharedMemory>(std::move(memory)));
  if (control.block().magic != kControlMagic || control.block().size != region_bytes()) {
    return Error{Code::kInvalid, "what was handed over is no control block of this version"};
  }
  return control;
}

Bytes Control::budget() const {
  return block().budget;
}

std::optional<MemberId> Control::enter(unsigned index) {
  FORELOAD_CHECK(index < kMostMembers, "there are 64 places");
  if (!lock_byte(memory_->file(), index)) return std::nullopt;
  MemberEntry& place = block().members[index];
  std::uint64_t seen = place.word.load();
  const ClaimWord before = ClaimWord::unpack(seen);
  const ClaimWord mine{.phase = kAlive, .generation = static_cast<std::uint16_t>(before.generation + 1)};
  if (before.phase == kEmpty) {  // the byte is ours, so nobody else writes here
    place.process = static_cast<std::uint32_t>(::getpid());
    place.reserved = 0;
    place.workers = 0;
  }
  // Not empty: it died, and its claims are still to be taken back. Giving up the lock lets the others see that.
  if (before.phase != kEmpty || !place.word.compare_exchange_strong(seen, mine.packed())) {
    unlock_byte(memory_->file(), index);
    return std::nullopt;
  }
  self_ = MemberId{static_cast<std::uint8_t>(index), mine.generation};
  return self_;
}

void Control::leave() {
  clear(*self_);
  unlock_byte(memory_->file(), self_->index);
  self_.reset();
}

bool Control::is_alive(MemberId member) const {
  if (member.index >= kMostMembers) return false;
  const ClaimWord word = ClaimWord::unpack(block().members[member.index].word.load());
  if (word.phase != kAlive || word.generation != member.generation) return false;
  return (self_ && self_->index == member.index) || is_byte_locked(memory_->file(), member.index);
}

std::vector<MemberInfo> Control::members() const {
  std::vector<MemberInfo> found;
  for (unsigned i = 0; i < kMostMembers; ++i) {
    const MemberEntry& place = block().members[i];
    const ClaimWord word = ClaimWord::unpack(place.word.load());
    if (word.phase != kAlive) continue;
    const MemberId id{static_cast<std::uint8_t>(i), word.generation};
    found.push_back({.id = id,
                     .process = place.process,
                     .reserved = place.reserved,
                     .workers = place.workers,
                     .alive = is_alive(id)});
  }
  return found;
}

void Control::add_workers(int count) {
  block().members[self_->index].workers.fetch_add(static_cast<std::uint32_t>(count));
}

bool Control::anybody_prepares() const {
  return std::ranges::any_of(members(), [](const MemberInfo& member) { return member.alive && member.workers > 0; });
}

std::vector<MemberId> Control::dead() const {
  std::vector<MemberId> found;
  for (const MemberInfo& member : members()) {
    if (!member.alive) found.push_back(member.id);
  }
  return found;
}

// What the control block itself knows of a member. A share names the life it belongs to, so whoever comes late with
// this harms nobody who has the place by then. The place is emptied last: a helper that dies is helped.
void Control::clear(MemberId member) {
  for (ObjectEntry& object : block().objects) {
    std::uint32_t share = object.shares[member.index].load();
    if (is_share_of(share, member)) object.shares[member.index].compare_exchange_strong(share, 0);
  }
  for (CoreEntry& core : block().core_table) {
    std::uint64_t word = core.word.load();
    const ClaimWord taken = ClaimWord::unpack(word);
    if (taken.phase == 0 || taken.owner() != member) continue;
    if (core.word.compare_exchange_strong(word, ClaimWord{.generation = taken.generation}.packed()))
      block().core.raise();
  }
  std::uint64_t seen = ClaimWord{.phase = kAlive, .generation = member.generation}.packed();
  const ClaimWord empty{.phase = kEmpty, .generation = member.generation};
  block().members[member.index].word.compare_exchange_strong(seen, empty.packed());
  announce();
}

Status Control::check_budget(Bytes before, Bytes wanted) const {
  Bytes taken = 0;
  const auto add = [&](Bytes bytes) { taken += std::min(bytes, std::numeric_limits<Bytes>::max() - taken); };
  for (const MemberEntry& member : block().members) {
    if (ClaimWord::unpack(member.word.load()).phase == kAlive) add(member.reserved);
  }
  for (const ObjectEntry& object : block().objects) {
    if (ClaimWord::unpack(object.word.load()).phase != kFree) add(object.reserved);
  }
  taken -= std::min(before, taken);
  if (taken <= budget() && wanted <= budget() - taken) return {};
  return Error{
      Code::kNoMemory,
      fmt::format("the host's memory budget of {} has {} left, and {} are needed: raise it for "
                  "all members, or end some of them",
                  format_bytes(budget()), format_bytes(budget() - std::min(budget(), taken)), format_bytes(wanted))};
}

Status Control::reserve(Bytes bytes) {
  const Lock lock(*this);
  FORELOAD_TRY(lock.held());
  MemberEntry& place = block().members[self_->index];
  FORELOAD_TRY(check_budget(place.reserved, bytes));
  place.reserved = bytes;
  return {};
}

ObjectInfo Control::info(unsigned index) const {
  const ObjectEntry& from = block().objects[index];
  const ClaimWord word = ClaimWord::unpack(from.word.load());
  ObjectInfo found{.id = std::uint64_t{word.generation} << 16 | index,
                   .key = {static_cast<ObjectKey::Kind>(from.kind.load()), from.first, from.second},
                   .bytes = from.bytes,
                   .reserved = from.reserved,
                   .last_used = Time(from.last_used.load()),
                   .dropped = word.phase == kDropped};
  for (unsigned i = 0; i < kMostMembers; ++i) {
    const std::uint32_t share = from.shares[i].load();
    if ((share & 1) != 0) found.holders |= std::uint64_t{1} << i;
    if ((share & 2) != 0) found.users |= std::uint64_t{1} << i;
  }
  return found;
}

Result<Control::Found> Control::find_or_add(const ObjectKey& key, Bytes bytes, Bytes reserve) {
  const Lock lock(*this);
  FORELOAD_TRY(lock.held());
  std::optional<unsigned> free;
  for (unsigned i = 0; i < kMostObjects; ++i) {
    const ClaimWord word = ClaimWord::unpack(block().objects[i].word.load());
    if (word.phase == kFree && !free) free = i;
    if (word.phase == kReady && info(i).key == key) return Found{info(i), false};
  }
  FORELOAD_TRY(check_budget(0, reserve));
  if (!free)
    return Error{Code::kNoMemory, fmt::format("the host has {} arenas and rings, which is the limit", kMostObjects)};
  ObjectEntry& entry = block().objects[*free];
  const ClaimWord before = ClaimWord::unpack(entry.word.load());
  entry.kind = static_cast<std::uint32_t>(key.kind);
  entry.first = key.first;
  entry.second = key.second;
  entry.bytes = bytes;
  entry.reserved = reserve;
  entry.last_used = now().count();
  entry.lead = 0;
  for (auto& share : entry.shares) share = 0;
  entry.shares[self_->index] = share_of(*self_, true);
  entry.word = ClaimWord{.phase = kReady, .generation = static_cast<std::uint16_t>(before.generation + 1)}.packed();
  announce();
  return Found{info(*free), true};
}

Control::ObjectEntry* Control::entry(ObjectId object) const {
  const std::uint64_t index = object & 0xffff;
  if (index >= kMostObjects) return nullptr;
  ObjectEntry& found = block().objects[index];
  const ClaimWord word = ClaimWord::unpack(found.word.load());
  return word.phase != kFree && word.generation == object >> 16 ? &found : nullptr;
}

Status Control::grow(ObjectId object, Bytes reserve) {
  const Lock lock(*this);
  FORELOAD_TRY(lock.held());
  ObjectEntry* found = entry(object);
  if (found == nullptr) return Error{Code::kNotFound, "the shared memory was let go of meanwhile"};
  if (found->reserved >= reserve) return {};
  FORELOAD_TRY(check_budget(found->reserved, reserve));
  found->reserved = reserve;
  return {};
}

Status Control::drop(ObjectId object) {
  const Lock lock(*this);
  FORELOAD_TRY(lock.held());
  ObjectEntry* found = entry(object);
  if (found == nullptr) return {};
  found->word = ClaimWord{.phase = kDropped, .generation = static_cast<std::uint16_t>(object >> 16)}.packed();
  return {};
}

Status Control::hold(ObjectId object, bool use) {
  const Lock lock(*this);
  FORELOAD_TRY(lock.held());
  ObjectEntry* found = entry(object);
  if (found == nullptr) return Error{Code::kNotFound, "the shared memory was let go of meanwhile"};
  found->last_used = now().count();
  found->shares[self_->index] = share_of(*self_, use);
  announce();
  return {};
}

Status Control::withdraw(ObjectId object) {
  {
    const Lock lock(*this);
    FORELOAD_TRY(lock.held());
    if (ObjectEntry* found = entry(object)) found->shares[self_->index] = 0;
    announce();
  }
  return collect();
}

// The memory of such an object went with the last descriptor.
Status Control::collect() {
  const Lock lock(*this);
  FORELOAD_TRY(lock.held());
  for (unsigned i = 0; i < kMostObjects; ++i) {
    ObjectEntry& object = block().objects[i];
    const ClaimWord word = ClaimWord::unpack(object.word.load());
    if (word.phase == kFree || info(i).holders != 0) continue;
    object.word = ClaimWord{.phase = kFree, .generation = word.generation}.packed();
  }
  return {};
}

std::vector<Control::Lead> Control::leads(std::uint64_t first) const {
  std::vector<Lead> found;
  for (unsigned i = 0; i < kMostObjects; ++i) {
    const ObjectEntry& object = block().objects[i];
    const std::uint64_t serial = object.lead.load();
    if (serial == 0 || ClaimWord::unpack(object.word.load()).phase != kReady) continue;
    const ObjectInfo ring = info(i);
    if (ring.key.kind == ObjectKey::Kind::kRing && ring.key.first == first && ring.users != 0)
      found.push_back({ring.id, serial});
  }
  return found;
}

Result<bool> Control::lead(ObjectId own, std::span<const Lead> known) {
  const Lock lock(*this);
  FORELOAD_TRY(lock.held());
  ObjectEntry* ring = entry(own);
  if (ring == nullptr) return Error{Code::kNotFound, "the shared memory was let go of meanwhile"};
  for (const Lead& other : leads(ring->first)) {
    if (other.object != own && std::ranges::find(known, other) == known.end()) return false;
  }
  ring->lead = block().leads.fetch_add(1) + 1;
  return true;
}

void Control::end_lead(ObjectId own) {
  if (ObjectEntry* ring = entry(own)) ring->lead = 0;
}

std::optional<ObjectInfo> Control::object(ObjectId object) const {
  if (entry(object) == nullptr) return std::nullopt;
  const ObjectInfo found = info(static_cast<unsigned>(object & 0xffff));
  return found.id == object ? std::optional(found) : std::nullopt;
}

std::vector<ObjectInfo> Control::objects() const {
  std::vector<ObjectInfo> found;
  for (unsigned i = 0; i < kMostObjects; ++i) {
    if (ClaimWord::unpack(block().objects[i].word.load()).phase != kFree) found.push_back(info(i));
  }
  return found;
}

}  // namespace foreload
