// TierStack: memory over disk over other hosts over source; the disk is this process's and, in a job over hosts, those
// of all learners of this host. The one way to a sample's bytes: a hit is a lease at once;
// a miss takes room, in the sample's home or in transit, and joins the queue of its origin; everyone who asks meanwhile
// joins that flight. Room is taken in the order of asking, so reads of different origins may start in any order without
// harm. Bytes from the disk are compared with their hash; wrong ones are dropped and read from the source. One thread
// asks, starts and waits; leases may be dropped on any thread.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "foreload/result.h"
#include "foreload/source.h"
#include "policy/cost_model.h"
#include "tier/arena.h"
#include "tier/disk_seat.h"
#include "tier/disk_tier.h"
#include "tier/homes.h"
#include "tier/peer_desk.h"
#include "tier/shared_arena.h"
#include "tier/source_tier.h"

namespace foreload {

enum class Ask {
  kHit,        // `lease` holds the bytes
  kQueued,     // it has room and waits for start_next(): its Arrival will come
  kJoined,     // somebody asked before: the same Arrival
  kBusy,       // a read would be needed, and none can be taken on now
  kNoRoom,     // transit is full, or the sample is being changed: ask again when a lease was dropped
  kElsewhere,  // another process reads it, or is about to make room for it: ask again soon
};

// The part of a sample that is read when it is not kept. Of storage: the header and some rows of MCUs, in their places.
// Of another host: the small JPEG of a crop, in the place of the first bytes.
struct PartialRead {
  std::array<SamplePart, 2> parts{};
  std::uint32_t first_row = 0;
  std::uint32_t end_row = 0;
  PeerCrop crop{};     // wanted: of another host
  Bytes expected = 0;  // of the small JPEG
  Bytes came = 0;      // the same, when it is here

  bool is_cut() const { return crop.is_wanted(); }
  Bytes bytes() const { return is_cut() ? expected : parts[0].length + parts[1].length; }
};

struct Answer {
  Ask kind = Ask::kNoRoom;
  Lease lease;
  bool first = false;  // with kJoined: it was only to fill a home, and now somebody needs it
};

// A read that left its queue.
struct Started {
  SampleId id = 0;
  Bytes length = 0;  // of what is read
  Origin origin = Origin::kSource;
  unsigned in_flight = 0;  // others at the origin
  bool fill = false;
};

struct Arrival {
  SampleId id = 0;
  Lease lease;  // valid when status is ok
  Status status;
  Bytes length = 0;                   // of what was read; of a cut one, as it was expected
  std::optional<PartialRead> part{};  // only this is there
  Origin origin = Origin::kSource;
  Origin asked = Origin::kSource;  // that of the request
  bool fill = false;               // nobody needed it so far
  bool dropped = false;            // the disk had it, but wrong
  Duration took{};
  unsigned retries = 0;

  Bytes came() const { return part && part->is_cut() ? part->came : length; }
};

struct Request {
  SampleId id = 0;
  Origin from = Origin::kSource;      // or nearest()
  bool urgent = false;                // use the urgent range when transit is full, and start at once
  bool fill = false;                  // only so that it is at home when it is needed
  bool alone = false;                 // do not wait for other processes: read it, but not into a home that they share
  bool far = false;                   // and that is not soon: it takes the onward range instead of transit
  std::optional<PartialRead> part{};  // this is enough. REQUIRES: not keeps(); a cut one is from a peer, others are not
  std::optional<Moment> moment{};     // where in the stream it stands; nothing: it is needed out of order
};

class TierStack {
 public:
  // Source and arena must outlive this. REQUIRES: every sample that is asked for fits an empty transit.
  // `disk` may be null.
  TierStack(const Source& source, std::unique_ptr<EvictionPolicy> policy, Arena& arena,
            std::unique_ptr<SourceTier> bottom, std::unique_ptr<DiskTier> disk = nullptr);
  void record_to(EventRecord* record) {  // REQUIRES: nothing was asked for yet; null, or it outlives this
    homes_.record_to(record);
    bottom_->record_to(record);
  }
  // Homes that all processes of a host have in common come before those of this one. It must outlive this.
  void share_homes(SharedArena* shared) { shared_ = shared; }
  // What the disks of a host's learners hold together: each keeps its own homes, and all read what is there. It must
  // outlive this.
  void share_disks(DiskSeat* seat) { seat_ = seat; }

  // What is at home on other hosts comes from there. `home` tells which; nothing: none has it. `asked` is called when
  // something has been asked for, before anything is waited for. The desk outlives this.
  struct Peers {
    PeerDesk* desk = nullptr;
    std::function<std::optional<std::uint32_t>(SampleId)> home;
    std::function<bool(SampleId)> is_kept_here;  // for all hosts
    std::function<void()> asked;
  };
  void use_peers(Peers peers) {
    peers_ = peers.desk;
    home_at_ = std::move(peers.home);
    is_kept_here_ = std::move(peers.is_kept_here);
    on_asked_ = std::move(peers.asked);
  }
  bool has_peers() const { return peers_ != nullptr; }
  // Is it for this process to see that this host keeps it for all? REQUIRES: has_peers().
  bool is_kept_here(SampleId id) const;
  // What others want of the homes here, and is to be filled for them.
  std::optional<SampleId> take_wanted();
  // What memory has, and is at home on the disk here, too, goes there. False: the disk has no time now.
  bool write_home(SampleId id);

  // The stream is asked for from here on.
  void restart(Moment now) { homes_.restart(now); }

  bool on_disk(SampleId id) const {
    return (disk_ != nullptr && disk_->store().has(id)) || (seat_ != nullptr && seat_->has_beside(id));
  }
  // Where it can be read soonest, as far as anybody here knows.
  Origin nearest(SampleId id) const;
  // Is its home, here or on disk, still empty?
  bool lacks(SampleId id) const;
  bool has_home(SampleId id) const;  // in memory
  bool keeps_anything() const { return homes_.plans_any() || disk_ != nullptr || shared_ != nullptr; }
  // Nothing is on its way, to memory or to the disk.
  bool is_idle() const { return flights_.empty() && (disk_ == nullptr || disk_->is_idle()); }
  // Will it stay, here or on disk, or is it there already? With a policy that evicts it may.
  bool keeps(SampleId id) const;
  Answer request(const Request& request, Time now);
  // Reads all of a sample of which a part was read, in its place. False: not now, and the lease is still the caller's.
  // REQUIRES: the only lease on it.
  bool complete(SampleId id, Lease& lease, Time now);
  // Where it would have to be read; nothing: it is in memory, or on its way there.
  std::optional<Origin> whereabouts(SampleId id) const {
    if (!arena_.is_absent(id) || (shared_ != nullptr && shared_->is_resident(id))) return std::nullopt;
    return nearest(id);
  }
  std::size_t waiting(Origin origin) const { return queue(origin).size(); }
  Bytes filling(Origin origin) const {
    return filling_[static_cast<std::size_t>(origin)];
  }  // asked for, for nobody yet
  unsigned in_flight(Origin origin) const { return flying_[static_cast<std::size_t>(origin)]; }
  // The oldest read that waits for its origin. Nothing: there is none, or the engine is busy.
  std::optional<Started> start_next(Origin origin, Time now);
  // Appends what arrived; waits for the first until `deadline` or wake().
  void wait(std::vector<Arrival>& arrivals, Time deadline);
  // Where a lease's bytes are.
  struct Place {
    std::uint32_t memory = 0;  // 0: the arena's, 1: that of the homes of all processes
    std::uint64_t offset = 0;
  };
  Place place_of(std::span<const std::byte> bytes) const;
  // Its bytes are here, and go with their last lease.
  bool is_passing(SampleId id) const { return arena_.is_transit(id); }
  void wake() { bottom_->wake(); }  // any thread

  unsigned in_flight() const { return bottom_->in_flight(); }
  unsigned max_depth() const { return bottom_->max_depth(); }
  const char* engine_name() const { return bottom_->engine_name(); }
  ObjectStats object_stats() const { return bottom_->object_stats(); }  // any thread
  DiskTier* disk() const { return disk_.get(); }                        // may be null
  // Gives up what waits, waits for all flights and drops what they bring.
  void drain();

 private:
  struct Flight {
    std::span<std::byte> into;
    Origin asked = Origin::kSource;
    Origin origin = Origin::kSource;
    bool fill = false;
    bool shared = false;   // to a home of all processes
    bool dropped = false;  // the disk had it, but wrong: now on its way from the source
    std::optional<PartialRead> part{};
    Lease lease{};                             // of a sample that is completed in its place
    std::optional<DiskSeat::Beside> beside{};  // another learner's disk, from which it comes

    Bytes bytes() const { return part ? part->bytes() : into.size(); }
  };

  const std::deque<SampleId>& queue(Origin origin) const { return queues_[static_cast<std::size_t>(origin)]; }
  // Room for the flight; nothing: kNoRoom or kElsewhere, as `why` says.
  std::optional<Flight> take_room(const Request& request, Bytes length, Time now, Ask& why);
  void abandon(SampleId id, const Flight& flight);
  void start(SampleId id, Flight& flight, Time now);
  // Is it only to fill a home? Not any more.
  bool take_over(Flight& flight);
  bool is_partial(SampleId id);
  void remember_partial(SampleId id);
  bool is_busy(const Flight& flight) const;
  bool wants_on_disk(SampleId id) const;
  bool is_doubted(SampleId id) const;  // others found other bytes on the disk here
  bool start_from_disk(SampleId id, Flight& flight, Time now);
  bool is_right(const SourceRead& read, const Flight& flight);
  // A read from the disk has ended. False: the flight goes on, from the source.
  bool land(const SourceRead& read, Flight& flight);
  void arrive(SourceRead& read, std::vector<Arrival>& arrivals);
  void take_from_peers(std::vector<Arrival>& arrivals);
  void want_all(SampleId id, Flight& flight);

  const Source& source_;
  Arena& arena_;
  SharedArena* shared_ = nullptr;
  DiskSeat* seat_ = nullptr;
  PeerDesk* peers_ = nullptr;
  std::function<std::optional<std::uint32_t>(SampleId)> home_at_;
  std::function<bool(SampleId)> is_kept_here_;
  std::function<void()> on_asked_;
  bool asked_ = false;  // peers, since the last wait
  Homes homes_;
  std::unique_ptr<SourceTier> bottom_;
  std::unique_ptr<DiskTier> disk_;                // its thread wakes the one above
  std::unordered_map<SampleId, Flight> flights_;  // waiting or started
  std::array<std::deque<SampleId>, kOrigins> queues_;
  std::array<unsigned, kOrigins> flying_{};
  std::array<Bytes, kOrigins> filling_{};
  std::unordered_set<SampleId> partial_;  // in transit with holes: nobody else may look. Some are gone already
  bool draining_ = false;
  std::vector<SourceRead> reads_;
};

}  // namespace foreload
