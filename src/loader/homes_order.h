// HomesOrder: the samples that a host keeps in memory, in the order in which they get their places: what is at home
// here as it is needed; then, when there are other hosts, what its learners will need soonest of what is not.
#pragma once

#include <optional>
#include <vector>

#include "loader/job.h"
#include "plan/balanced.h"
#include "plan/stream.h"

namespace foreload {

class HomesOrder {
 public:
  // Both must outlive it.
  HomesOrder(const Stream& stream, const JobPlan& job) : stream_(stream), job_(job) {}
  // Nothing: there are no more. Some may come twice.
  std::optional<SampleId> next();

 private:
  std::optional<SampleId> next_replica();
  std::vector<SampleId> samples_here(std::uint64_t step);

  const Stream& stream_;
  const JobPlan& job_;
  Position position_ = 0;
  std::uint64_t step_ = 0;
  std::vector<SampleId> replicas_;  // of the last step, backwards
  BalancedStep planned_;
};

}  // namespace foreload
