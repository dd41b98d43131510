// Standstill: whether a learner's samples lie there and nobody prepares them, for so long that whoever only stands by
// has to begin. Pure: what was seen comes in, with the time.
#pragma once

#include <cstdint>
#include <optional>

#include "foreload/types.h"

namespace foreload {

// What can be seen of a stream's prep at some moment.
struct PrepLook {
  Time now{};
  bool ready = false;          // there is something to prepare
  bool late = false;           // it belongs to the batch that the learner takes next
  bool staffed = false;        // somebody in the host has workers
  std::uint64_t prepared = 0;  // samples so far, whoever prepared them
};

class Standstill {
 public:
  static constexpr Duration kLook = std::chrono::milliseconds(200);  // between two looks
  static constexpr Duration kNobody = std::chrono::seconds(2);       // patience without workers: some may be starting
  static constexpr Duration kSomebody = std::chrono::seconds(10);    // they may be busy with others' samples

  // True: the patience is over.
  bool lasts(const PrepLook& look);

 private:
  std::optional<PrepLook> last_;
  Duration lasted_{};
};

}  // namespace foreload
