// Patience: whether something has been waited for long enough, by looks. Time in which nobody looked, because this
// process was stopped or had no core, hardly counts.
#pragma once

#include <algorithm>

#include "foreload/types.h"

namespace foreload {

class Patience {
 public:
  static constexpr Duration kMostPerLook = std::chrono::seconds(2);

  Patience(Duration length, Time now) : left_(length), last_(now) {}

  bool is_over(Time now) {
    left_ -= std::clamp(now - last_, Duration{}, kMostPerLook);
    last_ = now;
    return left_ <= Duration{};
  }

 private:
  Duration left_;
  Time last_;
};

}  // namespace foreload
