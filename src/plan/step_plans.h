// StepPlans: which positions of a planned global batch one learner takes. Planning one costs as much as all learners
// have samples in it, so the last ones are remembered; what they say is pure. Any thread.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "plan/balanced.h"

namespace foreload {

class StepPlans {
 public:
  // REQUIRES: rank < the roster's world.
  StepPlans(BalancedAssignment assignment, std::uint32_t rank) : assignment_(std::move(assignment)), rank_(rank) {}

  using Positions = std::shared_ptr<const std::vector<Position>>;
  Positions positions(Epoch epoch, std::uint64_t step) const FORELOAD_EXCLUDES(mutex_);
  std::uint64_t count(std::uint64_t step) const { return assignment_.count(step, rank_); }
  std::uint64_t max_count() const;  // over the steps of an epoch

  const BalancedAssignment& assignment() const { return assignment_; }

 private:
  static constexpr std::size_t kRemembered = 256;
  struct Remembered {
    Epoch epoch = 0;
    std::uint64_t step = 0;
    Positions positions{};
  };

  BalancedAssignment assignment_;
  std::uint32_t rank_;
  mutable Mutex mutex_;
  mutable BalancedStep step_ FORELOAD_GUARDED_BY(mutex_);
  mutable std::array<Remembered, kRemembered> remembered_ FORELOAD_GUARDED_BY(mutex_);
};

}  // namespace foreload
