// What this process may use of the machine: affinity, cgroup limits, memory.
#pragma once

#include "foreload/types.h"

namespace foreload {

unsigned usable_cores();      // affinity mask and cgroup quota, at least 1
Bytes available_memory();     // MemAvailable, cgroup headroom and RLIMIT_AS, whichever is least
Bytes peak_resident_bytes();  // of this process
double cpu_seconds();         // user + system of this process

}  // namespace foreload
