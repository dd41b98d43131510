// The assignment of a job over several hosts: each consumes what it is home of (plan/balanced).
#pragma once

#include <memory>

#include "foreload/loader.h"
#include "loader/seams.h"
#include "plan/step_plans.h"

namespace foreload {

// What a learner takes of each global batch by the job's roster; null when there is none: then by slices.
Result<std::shared_ptr<const StepPlans>> balance(const LoaderOptions& options, const Source& source,
                                                 const Schedule& schedule, const SliceAssignment& slices,
                                                 const std::optional<Roster>& roster);

}  // namespace foreload
