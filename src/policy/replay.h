// Replay: feeds what an event record says of a real run into fresh policy objects and compares their decisions with
// those of the run. What the numbers of events of reads mean is said here, for the one who writes them and the one who
// reads them; those of requests are made by policy/request_policy itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/event_record.h"
#include "policy/cost_model.h"
#include "policy/eviction.h"

namespace foreload {

// What kReadStarted has in c, and kReadDone in position.
struct ReadFields {
  Origin origin = Origin::kSource;
  Origin asked = Origin::kSource;  // where it was to be read; the disk may have lost it
  bool fill = false;
  unsigned in_flight = 0;  // others at the origin

  std::uint64_t pack() const;
  static ReadFields unpack(std::uint64_t packed);
};

struct ReplayResult {
  std::uint64_t decisions = 0;
  std::uint64_t different = 0;
  std::string first_difference{};
};

// REQUIRES, for all: `events` are in the order of time, as read_event_record() gives them.
// Routes, parts, depths and starts of reads.
ReplayResult replay_pacing(std::span<const Event> events);
// What requests to object stores fetch together, how many there are, which are sent twice, and when again. Ends with
// the first difference: what follows is another story.
ReplayResult replay_requests(std::span<const Event> events);
// Who was given a home and who left it, up to the first jump of the stream or the first difference. `policy` is fresh,
// of a kind that evicts, and restarted where the run began; `positions`: of an epoch. REQUIRES: no sample was replaced.
ReplayResult replay_eviction(std::span<const Event> events, EvictionPolicy& policy, std::uint64_t positions);

}  // namespace foreload
