// The order of a loader as its options say, and whether a saved state belongs to it.
#pragma once

#include <functional>

#include "foreload/loader.h"
#include "foreload/schedule.h"
#include "plan/assignment.h"

namespace foreload {

// Options that contradict each other; both are named.
Status check_order(const LoaderOptions& options);
// Positions of an epoch over `samples`, before anything is dropped or padded.
std::uint64_t positions_per_epoch(const LoaderOptions& options, std::uint64_t samples);
// The global batch: as given, or batch × world.
std::uint64_t global_batch_of(const LoaderOptions& options);
// How many samples are repeated together; 0: nothing is.
std::uint64_t echo_window_of(const LoaderOptions& options);
// REQUIRES: check_order() was ok. kInvalid: wrong weights.
Result<Schedule> make_schedule(const LoaderOptions& options, std::uint64_t samples);

// With reshuffle: the samples that stay with `rank` when they are not dealt; null when there is nothing to tell apart.
// Copies what it needs.
std::function<bool(SampleId)> own_samples(const Schedule& schedule, const SliceAssignment& assignment,
                                          std::uint32_t rank);

// Does a saved state continue the job that `here` describes? kMismatch names both values of what differs.
Status check_state(const State& state, const State& here, const SliceAssignment& assignment,
                   const ScheduleOptions& schedule);

}  // namespace foreload
