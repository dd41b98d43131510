// The parts of bench/cluster.
#pragma once

#include "foreload/result.h"
#include "report.h"

namespace foreload {

// What the assignment costs, and what it sends over the network, by its own account: no bytes are moved.
Status bench_planning(BenchReport& report);

}  // namespace foreload
