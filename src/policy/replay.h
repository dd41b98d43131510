// Replay: feeds what an event record says of a real run into fresh policy objects and compares their decisions with
// those of the run. What the numbers of such events mean is said here, for the one who writes them and the one who
// reads them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/event_record.h"
#include "policy/cost_model.h"

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

// REQUIRES: `events` are in the order of time.
ReplayResult replay_pacing(std::span<const Event> events);

}  // namespace foreload
