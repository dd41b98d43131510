// TierStack: memory over disk over source. The one way to a sample's bytes: a hit is a lease at once; a miss begins one
// flight, from disk or source into the sample's home or through transit, and everyone who asks meanwhile joins it.
// Bytes from the disk are compared with their hash; wrong ones are dropped and read from the source. One thread asks
// and waits; leases may be dropped on any thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "foreload/result.h"
#include "foreload/source.h"
#include "tier/arena.h"
#include "tier/disk_tier.h"
#include "tier/homes.h"
#include "tier/source_tier.h"

namespace foreload {

enum class Ask {
  kHit,      // `lease` holds the bytes
  kStarted,  // a flight began: its Arrival will come
  kJoined,   // somebody began it before: the same Arrival
  kBusy,     // a read would be needed, and none may start now
  kNoRoom,   // transit is full, or the sample is being changed: ask again when a lease was dropped
};

// Where a flight reads; the numbers are those of the event record.
enum class Origin : std::uint8_t { kSource = 0, kDisk = 1 };

struct Answer {
  Ask kind = Ask::kNoRoom;
  Lease lease;
  Origin origin = Origin::kSource;  // with kStarted
};

struct Arrival {
  SampleId id = 0;
  Lease lease;  // valid when status is ok
  Status status;
  Bytes length = 0;
  Origin origin = Origin::kSource;
  bool dropped = false;  // the disk had it, but wrong
  Duration took{};
  unsigned retries = 0;
};

struct Request {
  SampleId id = 0;
  bool may_read = true;
  bool urgent = false;             // use the urgent range when transit is full
  std::optional<Moment> moment{};  // where in the stream it stands; nothing: it is needed out of order
};

class TierStack {
 public:
  // Source and arena must outlive this. REQUIRES: every sample that is asked for fits an empty transit.
  // `disk` may be null.
  TierStack(const Source& source, std::unique_ptr<EvictionPolicy> policy, Arena& arena,
            std::unique_ptr<SourceTier> bottom, std::unique_ptr<DiskTier> disk = nullptr);
  void record_to(EventRecord* record) { homes_.record_to(record); }

  // The stream is asked for from here on.
  void restart(Moment now) { homes_.restart(now); }

  Answer request(const Request& request, Time now);
  // Appends what arrived; waits for the first until `deadline` or wake().
  void wait(std::vector<Arrival>& arrivals, Time deadline);
  // Another lease on the same bytes.
  Lease share(const Lease& lease) { return arena_.share(lease); }
  // Its bytes are here, and go with their last lease.
  bool is_passing(SampleId id) const { return arena_.is_transit(id); }
  void wake() { bottom_->wake(); }  // any thread

  unsigned in_flight() const { return bottom_->in_flight(); }
  unsigned max_depth() const { return bottom_->max_depth(); }
  const char* engine_name() const { return bottom_->engine_name(); }
  DiskTier* disk() const { return disk_.get(); }  // may be null
  // Waits for all flights and drops what they bring.
  void drain();

 private:
  struct DiskFlight {
    std::span<std::byte> into;
    bool dropped = false;  // and now on its way from the source
  };

  std::optional<std::span<std::byte>> take_room(const Request& request, Bytes length);
  Origin start(SampleId id, std::span<std::byte> into, Time now);
  // A flight from the disk has ended. False: it goes on, from the source.
  bool land(const SourceRead& read, DiskFlight& flight);

  const Source& source_;
  Arena& arena_;
  Homes homes_;
  std::unique_ptr<SourceTier> bottom_;
  std::unique_ptr<DiskTier> disk_;  // its thread wakes the one above
  std::unordered_map<SampleId, DiskFlight> from_disk_;
  bool draining_ = false;
  std::vector<SourceRead> reads_;
};

}  // namespace foreload
