// A slot goes free or ready → planning → ready, and has one step at a time: number modulo the count of slots.
#include "host/plan_board.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/claim_word.h"
#include "base/clock.h"
#include "base/hash.h"

namespace foreload {
namespace {

enum Phase : std::uint8_t { kFree = 0, kPlanning = 1, kReady = 2 };

constexpr Bytes kMost = 1_MiB;  // of all slots, if that is enough for kFewest
constexpr std::uint64_t kFewest = 8;
constexpr std::uint64_t kMostSlots = 256;
constexpr Duration kPatience = std::chrono::milliseconds(20);  // with somebody who plans what is needed
constexpr Duration kLook = std::chrono::microseconds(200);
constexpr Bytes kAlign = 64;

}  // namespace

struct PlanBoard::Slot {
  std::atomic<std::uint64_t> word{0};  // ClaimWord
  std::atomic<std::uint64_t> number{0};
  std::atomic<std::uint64_t> hash{0};
};

Bytes PlanBoard::slot_bytes(std::uint64_t samples) {
  return (sizeof(Slot) + samples * sizeof(std::uint32_t) + kAlign - 1) / kAlign * kAlign;
}

PlanBoard::PlanBoard(std::shared_ptr<Member> member, std::shared_ptr<SharedObject> memory, std::uint64_t samples)
    : member_(std::move(member)),
      memory_(std::move(memory)),
      samples_(samples),
      slots_(memory_->memory().bytes().size() / slot_bytes(samples)) {}

Result<std::unique_ptr<PlanBoard>> PlanBoard::open(std::shared_ptr<Member> member, std::uint64_t key,
                                                   std::uint64_t samples) {
  const std::uint64_t slots = std::clamp(kMost / slot_bytes(samples), kFewest, kMostSlots);
  const Bytes bytes = (slots * slot_bytes(samples) + 4095) / 4096 * 4096;
  const auto fill = [&](const SharedMemory& memory) { return memory.reserve(0, bytes); };  // zeros: all are free
  const ObjectKey object{ObjectKey::Kind::kPlans, key, samples};
  FORELOAD_ASSIGN(auto memory, member->open({.key = object, .bytes = bytes, .reserve = bytes, .fill = fill}));
  return std::unique_ptr<PlanBoard>(new PlanBoard(std::move(member), std::move(memory), samples));
}

PlanBoard::Slot& PlanBoard::slot(std::uint64_t number) const {
  std::byte* const start = memory_->memory().bytes().data() + number % slots_ * slot_bytes(samples_);
  return *reinterpret_cast<Slot*>(start);
}

std::span<std::atomic<std::uint32_t>> PlanBoard::data(Slot& slot, std::size_t count) const {
  return {reinterpret_cast<std::atomic<std::uint32_t>*>(&slot + 1), count};
}

bool PlanBoard::read(Slot& slot, std::uint64_t number, std::span<std::uint32_t> offsets) const {
  const std::uint64_t seen = slot.word.load(std::memory_order_acquire);
  if (ClaimWord::unpack(seen).phase != kReady || slot.number.load(std::memory_order_relaxed) != number) return false;
  const std::uint64_t hash = slot.hash.load(std::memory_order_relaxed);
  std::ranges::transform(data(slot, offsets.size()), offsets.begin(),
                         [](const auto& offset) { return offset.load(std::memory_order_relaxed); });
  std::atomic_thread_fence(std::memory_order_acquire);
  return slot.word.load(std::memory_order_relaxed) == seen && hash_bytes(std::as_bytes(offsets)) == hash;
}

bool PlanBoard::is_planned(const Slot& slot, std::uint64_t number) const {
  const ClaimWord word = ClaimWord::unpack(slot.word.load(std::memory_order_acquire));
  return word.phase == kPlanning && slot.number.load(std::memory_order_relaxed) == number &&
         !(word.owner() == member_->id()) && member_->control().is_alive(word.owner());
}

bool PlanBoard::find(std::uint64_t number, std::span<std::uint32_t> offsets) {
  if (offsets.size() > samples_) return false;
  Slot& place = slot(number);
  const Time give_up = now() + kPatience;
  for (;;) {
    if (read(place, number, offsets)) return true;
    if (!is_planned(place, number) || now() >= give_up) break;
    std::this_thread::sleep_for(kLook);
  }
  std::uint64_t seen = place.word.load(std::memory_order_acquire);
  const ClaimWord before = ClaimWord::unpack(seen);
  const bool taken = before.phase == kPlanning && member_->control().is_alive(before.owner());
  if (taken) return false;
  const MemberId self = member_->id();
  const ClaimWord mine{.phase = kPlanning,
                       .member = self.index,
                       .member_generation = self.generation,
                       .generation = static_cast<std::uint16_t>(before.generation + 1)};
  if (place.word.compare_exchange_strong(seen, mine.packed(), std::memory_order_acq_rel)) place.number = number;
  return false;
}

void PlanBoard::put(std::uint64_t number, std::span<const std::uint32_t> offsets) {
  Slot& place = slot(number);
  ClaimWord word = ClaimWord::unpack(place.word.load(std::memory_order_acquire));
  const bool mine = word.phase == kPlanning && word.owner() == member_->id() && place.number == number;
  if (!mine || offsets.size() > samples_) return;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    data(place, offsets.size())[i].store(offsets[i], std::memory_order_relaxed);
  }
  place.hash.store(hash_bytes(std::as_bytes(offsets)), std::memory_order_relaxed);
  word.phase = kReady;
  place.word.store(word.packed(), std::memory_order_release);
}

}  // namespace foreload
