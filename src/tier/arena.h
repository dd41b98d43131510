// Arena: the memory of a tier in one region without pointers: a dense slot table by sample id, and four
// ranges of extents: *home* (samples that stay), *transit* (bytes that only pass through), *urgent* (room
// for one substitute while transit is full) and *onward* (room for what goes to the disk while transit is full). A
// slot moves absent → flying → resident, and back when it is freed or evicted; whoever moves it to flying reads the
// bytes, everyone else joins: one flight per sample. A sample that is not at home is freed with its last lease. All
// methods: any thread, never block.
//
//   [ slot table: N × 16 bytes ][ home ][ transit ][ urgent ][ onward ]
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/claim_word.h"
#include "base/mutex.h"
#include "base/region.h"
#include "foreload/result.h"
#include "foreload/types.h"
#include "tier/extents.h"
#include "tier/lease.h"

namespace foreload {

enum class Area : std::uint8_t { kHome, kTransit, kUrgent, kOnward };
inline constexpr int kAreas = 4;

struct ArenaOptions {
  std::uint64_t samples = 0;
  Bytes home = 0;  // usable bytes: what footprints may add up to
  Bytes transit = 0;
  Bytes urgent = 0;
  Bytes onward = 0;
  bool growth = false;  // every home has room for grown() bytes
};

class Arena : private LeaseBook {
 public:
  static constexpr unsigned kMostLeases = 1 << 15;  // of one sample; a batch of weighted draws may hold it many times

  static Bytes footprint(Bytes length) { return Extents::footprint(length); }
  // How long a sample may become when it is coded again.
  static Bytes grown(Bytes length) { return length + length / 50 + 64; }
  // What the region takes besides the usable bytes.
  static Bytes overhead(std::uint64_t samples);
  static Bytes region_bytes(const ArenaOptions& options);
  static Result<std::unique_ptr<Arena>> create(const ArenaOptions& options);
  // In memory that others may see too, but only this process changes. REQUIRES: zeroed, of region_bytes().
  static std::unique_ptr<Arena> create(const ArenaOptions& options, Region region);

  // A lease if the sample is resident, and does not have kMostLeases. REQUIRES: `length` is the sample's.
  std::optional<Lease> lease(SampleId id, Bytes length);
  // REQUIRES: it is the only lease, and nobody else can get one meanwhile.
  std::span<std::byte> writable(const Lease& lease);
  bool is_absent(SampleId id) const;
  bool is_flying(SampleId id) const;
  bool is_transit(SampleId id) const;                                     // resident in transit
  bool is_urgent(SampleId id) const { return is_in(id, Area::kUrgent); }  // it is there, or on its way there
  bool is_onward(SampleId id) const { return is_in(id, Area::kOnward); }

  // Takes room for the sample and marks it as flying; nothing when there is no room now.
  // REQUIRES: absent, and this thread is the only one that begins flights of this id.
  std::optional<std::span<std::byte>> begin(SampleId id, Bytes length, Area area);
  // The bytes are complete: resident from now on, with one lease. REQUIRES: begun by the caller.
  Lease commit(SampleId id, Bytes length);
  // The bytes will not come: absent again.
  void abandon(SampleId id);

  // A sample at home that nobody leases goes: absent from now on, its room free. False: it is not at home, or leased.
  // REQUIRES: this thread is the only one that begins flights of this id.
  bool evict(SampleId id);

  // Another coding of the sample may be written over the bytes at home; until end_change() nobody gets a lease, and
  // after it a lease has all of the room that is returned here. Nothing when it is not at home, was changed before, or
  // somebody has a lease.
  std::optional<std::span<std::byte>> begin_change(SampleId id, Bytes length);
  void end_change(SampleId id);
  Bytes room(Bytes length) const { return growth_ ? grown(length) : length; }  // that begin_change() gives
  bool is_home(SampleId id) const;                                             // resident, to stay, as it was read

  Bytes home_used() const;
  std::span<const std::byte> memory() const { return region_.bytes(); }  // where the bytes of all leases are

 private:
  struct Slot {
    std::atomic<std::uint64_t> word;    // ClaimWord; count = leases
    std::atomic<std::uint64_t> offset;  // from the region's start
  };
  struct Range {
    std::uint64_t start = 0;
    Extents extents;
  };

  Arena(Region region, const ArenaOptions& options);
  Slot& slot(SampleId id) const;
  std::uint8_t phase(SampleId id) const;
  bool is_in(SampleId id, Area area) const;
  // One lease more; false when it can not be leased.
  bool acquire(SampleId id, std::uint8_t& phase);
  std::optional<Range>& range(Area area) FORELOAD_REQUIRES(mutex_);
  void add(SampleId id) override;
  void drop(SampleId id) override;
  void free_extent(Area area, std::uint64_t offset);

  Region region_;
  std::uint64_t samples_;
  bool growth_;
  mutable Mutex mutex_;
  std::optional<Range> ranges_[kAreas] FORELOAD_GUARDED_BY(mutex_);
};

}  // namespace foreload
