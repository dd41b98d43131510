// Which samples have their home in memory before a run begins, as its options say.
#pragma once

#include "foreload/loader.h"
#include "foreload/source.h"
#include "loader/setup.h"
#include "plan/placement.h"
#include "plan/stream.h"

namespace foreload {

// Nothing has one with a policy that evicts: there homes are given as the run goes.
Placement plan_homes(const LoaderOptions& options, const Source& source, const SizedPlan& sized, const Stream& stream);

}  // namespace foreload
