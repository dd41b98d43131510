// The one place that reads the clock. plan/ and policy/ never include this: time is passed to them.
#pragma once

#include "foreload/types.h"

namespace foreload {

inline constexpr Time kNever = Time::max();

inline Time now() {
  return std::chrono::duration_cast<Time>(std::chrono::steady_clock::now().time_since_epoch());
}

inline double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace foreload
