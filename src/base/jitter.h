// Jitter: keys that differ between processes and from call to call, so that many who fail together do not return
// together. For pauses only: nothing that is delivered depends on them.
#pragma once

#include <unistd.h>

#include <cstdint>

#include "base/clock.h"
#include "base/random.h"

namespace foreload {

inline std::uint64_t jitter_key() {
  return mix64(static_cast<std::uint64_t>(now().count()) ^ static_cast<std::uint64_t>(getpid()) << 40);
}

}  // namespace foreload
