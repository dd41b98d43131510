// What stands in a ring's region; for ring*.cc alone.
//
// Region:  [ Header ][ slot 0 ][ slot 1 ] …, each on pages of its own
// Slot:    [ Slot ][ items ][ labels ][ ids ][ positions ][ lengths ][ mixes ][ rows ][ tensors ]
// Each column is 64-byte aligned; lengths, mixes and rows take no room when the stream has none.
#pragma once

#include <array>

#include "pipeline/ring.h"

namespace foreload {

enum SlotPhase : std::uint8_t {
  kFree = 0,
  kOpen = 1,
  kCompleting = 2,
  kPublished = 3,
  kAbandoned = 4,  // retired while somebody was completing it, who may still write
  kResting = 5     // retired; those who have claimed may still write, those who have taken may still read
};
// Of a place for a reader.
enum ReaderPhase : std::uint8_t { kNobody = 0, kAway = 1, kAttached = 2 };
enum Feeding : std::uint32_t { kIdle = 0, kForAll = 1, kForOne = 2 };
enum ItemPhase : std::uint8_t { kWaiting = 0, kReady = 1, kClaimed = 2, kDone = 3, kBad = 4 };

inline constexpr std::size_t kErrorText = 2048;
inline constexpr std::size_t kPage = 4096;
inline constexpr std::uint32_t kNoFailure = ~0u;
inline constexpr std::int64_t kBytesMissing = -1;
inline constexpr unsigned kMostSlots = 64;  // a bit each in Reader::held

// Words of slots and items carry the life of the slot, which is one more each time it is opened: whoever comes late
// with what belongs to an earlier life changes nothing.
inline std::uint64_t word(std::uint8_t phase, std::uint32_t life, MemberId owner = {}) {
  return ClaimWord{.phase = phase,
                   .member = owner.index,
                   .member_generation = owner.generation,
                   .count = static_cast<std::uint16_t>(life >> 16),
                   .generation = static_cast<std::uint16_t>(life)}
      .packed();
}
inline std::uint32_t life_of(std::uint64_t word) {
  const ClaimWord of = ClaimWord::unpack(word);
  return std::uint32_t{of.count} << 16 | of.generation;
}
inline std::uint8_t phase_of(const std::atomic<std::uint64_t>& state) {
  return ClaimWord::unpack(state.load(std::memory_order_acquire)).phase;
}

// What one learner has taken, and goes on with. Only the learner writes here, but for the word.
struct alignas(64) Ring::Reader {
  std::atomic<std::uint64_t> word{0};
  std::atomic<std::uint64_t> next{0};  // the batch that it takes next; all before it it has passed
  std::atomic<std::uint64_t> held{0};  // slots that it reads
  std::atomic<std::int64_t> last{0};
  std::atomic<std::int64_t> step{0};
  std::atomic<std::uint32_t> waiting{0};
};

// What readers need of the slots.
struct Ring::Needed {
  bool any = false;                        // reader that is attached
  std::uint64_t next = ~std::uint64_t{0};  // the earliest batch that one of them has not passed
  std::uint64_t held = 0;                  // slots, one bit each
};

struct alignas(64) Ring::Header {
  WorkSignal work{};
  std::atomic<std::uint32_t> published{0};
  std::atomic<std::uint32_t> published_sleepers{0};
  std::atomic<std::uint32_t> stopped{0};
  std::atomic<std::uint32_t> call{0};
  std::atomic<std::uint32_t> feeder{0};
  std::atomic<std::uint32_t> feeding{kIdle};
  std::atomic<std::uint64_t> fed_by{0};  // ClaimWord: whose process
  std::atomic<std::uint64_t> opened{0};  // the first batch that had no slot yet
  std::atomic<std::uint64_t> last{0};    // the first that never comes
  std::atomic<std::int64_t> beat{0};     // when the feeder was seen at work
  std::array<std::atomic<std::uint64_t>, 13> report{};
  std::array<std::atomic<std::uint64_t>, 64> prepared_by{};
  std::array<Reader, kMostReaders> readers{};
};

struct alignas(64) Ring::Slot {
  std::atomic<std::uint64_t> state{0};
  std::atomic<std::uint64_t> number{0};
  // Somebody who looked at an earlier life of the slot may read these while they are written.
  std::atomic<std::uint64_t> epoch{0};
  std::atomic<std::uint64_t> step{0};
  std::atomic<std::uint64_t> first{0};
  std::atomic<std::uint64_t> count{0};
  std::atomic<std::uint32_t> ready{0};
  std::atomic<std::uint32_t> waiting{0};
  std::atomic<std::uint64_t> finished{0};  // life << 32 | samples that are done
  std::atomic<std::uint32_t> settled{0};
  std::atomic<std::uint32_t> rejected{0};
  std::atomic<std::uint32_t> search_from{0};
  std::atomic<std::int64_t> bytes_complete{kBytesMissing};
  std::atomic<std::int64_t> completing_since{0};
  std::atomic<std::uint64_t> memory_bytes{0};
  std::atomic<std::uint64_t> disk_bytes{0};
  std::atomic<std::uint64_t> peer_bytes{0};
  std::atomic<std::uint64_t> source_bytes{0};
  std::atomic<std::uint64_t> filled_bytes{0};
  std::atomic<std::uint64_t> prep_busy{0};
  std::atomic<std::uint64_t> replaced{0};
  std::atomic<std::uint64_t> damaged{0};
  std::uint32_t failed_index = kNoFailure;
  std::uint32_t failed_code = 0;
  char error[kErrorText] = {};
};

struct alignas(64) Ring::Item {
  std::atomic<std::uint64_t> word{0};
  std::atomic<std::int64_t> claimed_at{0};  // or ready
  RingWork work{};                          // written by the feeder before it is ready
  // Written by the worker before it is done. No bool: others may write anything.
  std::int64_t busy = 0;
  std::uint64_t length = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t damaged = 0;
  std::uint16_t code = 0;
  char reason[kMostReason] = {};
};

struct Ring::Columns {
  std::size_t items, labels, ids, positions, lengths, mixes, rows, tensors, stride;
};

}  // namespace foreload
