// SharedArena: homes of samples for all processes of a host, in one region without pointers. Every home has its place
// from the beginning, so there is nothing to allocate, nothing to free and nothing to repair after a death. A slot
// moves absent → flying → resident and stays: one flight per sample over all processes, one copy of it. Other processes
// are not trusted with addresses: what stands in the region is bounded before it is used. Any thread, never blocks.
//
//   [ header ][ slot table: N × 24 bytes ][ homes, in the order in which they will be needed first ]
//
// Homes behind reserved() have no memory yet. Whoever needs one says so, and some member reserves more. Beside word and
// offset a slot has the hash of the sample's bytes, for readers on other hosts: they see copies that may be torn.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/claim_word.h"
#include "foreload/result.h"
#include "foreload/types.h"
#include "tier/lease.h"

namespace foreload {

struct SharedArenaOptions {
  std::uint64_t samples = 0;
  Bytes homes = 0;  // what the footprints of all homes add up to
};

// A copy of a slot, for a reader that does not have the region: it reads the slot, the bytes and the slot again. When
// both slots are equal and the bytes have their hash, they are the sample's.
struct SlotCopy {
  static constexpr Bytes kBytes = 24;

  std::uint64_t word = 0;
  std::uint64_t offset = 0;  // of its bytes, from the region's start
  std::uint64_t hash = 0;

  static SlotCopy parse(std::span<const std::byte, kBytes> bytes);
  bool is_resident() const;
  bool operator==(const SlotCopy&) const = default;
};

class SharedArena : private LeaseBook {
 public:
  static Bytes footprint(Bytes length) { return (length + 15) / 16 * 16; }
  static Bytes region_bytes(const SharedArenaOptions& options);
  static Bytes table_bytes(std::uint64_t samples);  // at the region's start: reserved before format()
  static Bytes slot_offset(SampleId id);            // from the region's start; SlotCopy::kBytes long

  // Gives homes to `next`'s samples until it has no more, or room is used up. REQUIRES: zeroed memory of
  // region_bytes().
  static void format(std::span<std::byte> memory, const SharedArenaOptions& options,
                     const std::function<std::optional<SampleId>()>& next,
                     const std::function<Bytes(SampleId)>& length);
  // Of memory that was formatted by somebody else, for a reader without an index. kInvalid: it was not.
  static Result<SharedArenaOptions> options_of(std::span<const std::byte> memory);
  // kInvalid: the memory was not formatted for these. It must outlive the arena. `is_alive` tells of any member.
  static Result<std::unique_ptr<SharedArena>> open(std::span<std::byte> memory, const SharedArenaOptions& options,
                                                   MemberId self, std::function<bool(MemberId)> is_alive);

  std::span<const std::byte> memory() const { return memory_; }
  bool has_home(SampleId id) const;
  bool is_resident(SampleId id) const;
  // A lease if the sample is resident. REQUIRES: `length` is the sample's.
  std::optional<Lease> lease(SampleId id, Bytes length);
  // xxh3 of the sample's bytes, as they were committed; nothing: it is not resident.
  std::optional<std::uint64_t> hash(SampleId id) const;

  enum class Begun {
    kMine,       // read into `into`, then commit() or abandon()
    kElsewhere,  // somebody else reads it
    kNotYet,     // its home has no memory so far
    kNoHome,     // nor will it have one
  };
  Begun begin(SampleId id, Bytes length, std::span<std::byte>& into);
  // REQUIRES for both: begun by this process.
  Lease commit(SampleId id, Bytes length);
  void abandon(SampleId id);

  // What other hosts want of this one, and is not here yet. Who wants it on their behalf says so, and whoever can read
  // it takes it off the list. False: it is listed already, the list is full, or it is not at home here.
  bool want(SampleId id);
  std::optional<SampleId> take_wanted();

  // How far homes have memory, how far somebody wants it, and how far there are any.
  Bytes reserved() const;
  Bytes wanted() const;
  Bytes end() const { return end_; }
  void reserved_to(Bytes end);  // never less than before
  void end_growth();            // no more will be reserved: homes behind it are none
  // Called when somebody here wants more than is reserved. Before anything else.
  void on_wanted(std::function<void()> call) { on_wanted_ = std::move(call); }
  Bytes used() const;  // Σ footprint of what is resident; O(1)

 private:
  friend struct SlotCopy;  // has its layout
  struct Header;
  struct Slot;

  SharedArena(std::span<std::byte> memory, const SharedArenaOptions& options, MemberId self,
              std::function<bool(MemberId)> is_alive);
  Header& header() const;
  Slot& slot(SampleId id) const;
  std::span<std::byte> bytes_of(SampleId id, Bytes length) const;  // empty: its place can not be
  // Homes are never taken away, so nobody counts.
  void add(SampleId /*id*/) override {}
  void drop(SampleId /*id*/) override {}

  std::span<std::byte> memory_;
  std::uint64_t samples_;
  Bytes end_;
  MemberId self_;
  std::function<bool(MemberId)> is_alive_;
  std::function<void()> on_wanted_;
};

}  // namespace foreload
