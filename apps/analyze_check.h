// --check: the model against the real loader, where it was measured and where it was not.
#pragma once

#include <vector>

#include "analysis.h"
#include "probe/planned_job.h"

namespace foreload {

// As it is, and over slow storage with nothing and with half of the samples cached. Of a large dataset a part is taken,
// chosen by the seed, for which an epoch takes some seconds.
Result<std::vector<CheckedPoint>> check_model(const PlannedJob& job, const Model& model);

}  // namespace foreload
