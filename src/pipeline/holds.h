// Holds: leases on samples in transit whose repeats are still to come in their block of an echoed order, so that their
// bytes are fetched once. Nobody waits for a hold: without one, a repeat is fetched again. One thread.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "foreload/types.h"
#include "tier/arena.h"

namespace foreload {

class Holds {
 public:
  // `echo`: how often a sample comes in a block; 1: nothing is held. `limit`: of all footprints together.
  Holds(std::uint64_t echo, Bytes limit) : echo_(echo), limit_(limit) {}

  static Bytes bytes_for(std::uint64_t window) { return window * (sizeof(Hold) + 4 * sizeof(void*)); }

  // What follows is asked for in this block; the holds of another one go.
  void enter(Epoch epoch, std::uint64_t block);
  // The sample was asked for; the last time in a block ends its hold.
  void asked(SampleId id);
  // Repeats are to come, and there is room.
  bool wants(SampleId id, Bytes length) const;
  // REQUIRES: wants() it.
  void keep(SampleId id, Lease lease);
  // All of them. False: there were none.
  bool drop();

 private:
  struct Hold {
    Lease lease;
    std::uint64_t asked = 0;
  };

  void end(Hold& hold);

  std::uint64_t echo_;
  Bytes limit_;
  Bytes held_ = 0;
  Epoch epoch_ = 0;
  std::uint64_t block_ = 0;
  std::unordered_map<SampleId, Hold> holds_;  // of one block
};

}  // namespace foreload
