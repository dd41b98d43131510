// How often one learner uses every sample: what the `frequency` placement is made of. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/stream.h"

namespace foreload {

// Counts through the epochs of the run, the first 16 of one without a known end; in both cases at most about 2^26 uses
// and never less than one epoch, so that it takes seconds and not minutes. Counts end at 65,535.
std::vector<std::uint16_t> count_uses(const Stream& stream);

}  // namespace foreload
