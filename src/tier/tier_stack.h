// TierStack: memory over source. The one way to a sample's bytes: a hit is a lease at once; a miss begins one
// flight, into the sample's home or through transit, and everyone who asks meanwhile joins it. One thread asks
// and waits; leases may be dropped on any thread.
#pragma once

#include <memory>
#include <vector>

#include "foreload/result.h"
#include "foreload/source.h"
#include "plan/placement.h"
#include "tier/arena.h"
#include "tier/source_tier.h"

namespace foreload {

enum class Ask {
  kHit,      // `lease` holds the bytes
  kStarted,  // a flight began: its Arrival will come
  kJoined,   // somebody began it before: the same Arrival
  kBusy,     // a read would be needed, and none may start now
  kNoRoom,   // transit is full, or the sample is being changed: ask again when a lease was dropped
};

struct Answer {
  Ask kind = Ask::kNoRoom;
  Lease lease;
};

struct Arrival {
  SampleId id = 0;
  Lease lease;  // valid when status is ok
  Status status;
  Bytes length = 0;
  Duration took{};
  unsigned retries = 0;
};

struct Request {
  SampleId id = 0;
  bool may_read = true;
  bool urgent = false;  // use the urgent range when transit is full
};

class TierStack {
 public:
  // All must outlive this. REQUIRES: every sample that is asked for fits an empty transit.
  TierStack(const Source& source, const Placement& placement, Arena& arena, std::unique_ptr<SourceTier> bottom);

  Answer request(const Request& request, Time now);
  // Appends what arrived; waits for the first until `deadline` or wake().
  void wait(std::vector<Arrival>& arrivals, Time deadline);
  // Another lease on the same bytes.
  Lease share(const Lease& lease) { return arena_.share(lease); }
  void wake() { bottom_->wake(); }  // any thread

  unsigned in_flight() const { return bottom_->in_flight(); }
  unsigned max_depth() const { return bottom_->max_depth(); }
  const char* engine_name() const { return bottom_->engine_name(); }
  // Waits for all flights and drops what they bring.
  void drain();

 private:
  const Source& source_;
  const Placement& placement_;
  Arena& arena_;
  std::unique_ptr<SourceTier> bottom_;
  std::vector<SourceRead> reads_;
};

}  // namespace foreload
