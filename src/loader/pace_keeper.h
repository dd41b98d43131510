// PaceKeeper: measures what the consumer does with a batch, and tells the ring, so that workers of a host know who will
// run out first. The consumer's thread.
#pragma once

#include "pipeline/ring.h"

namespace foreload {

class PaceKeeper {
 public:
  // The consumer asked for batch `number` at `asked` and got it at `delivered`.
  void taken(Ring& ring, std::uint64_t number, Time asked, Time delivered) {
    constexpr int kMemory = 8;  // steps over which the pace is averaged
    if (last_ != Time{}) {
      const Duration step = asked - last_;
      step_ = step_ == Duration{} ? step : step_ + (step - step_) / kMemory;
    }
    last_ = delivered;
    ring.set_pace({.next = number + 1, .last = delivered, .step = step_});
  }

 private:
  Time last_{};
  Duration step_{};
};

}  // namespace foreload
