// StepPlans: which positions of a planned global batch one learner takes. Planning one costs as much as all learners
// have samples in it, so the last ones are remembered; what they say is pure. Any thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "plan/balanced.h"

namespace foreload {

// What the learners of a host tell each other about planned steps. Any thread.
class StepShare {
 public:
  virtual ~StepShare() = default;
  // Offsets in step `number`, counted over all epochs, of all learners of the host in their order. False: nobody has
  // planned it; whoever asks is about to.
  virtual bool find(std::uint64_t number, std::span<std::uint32_t> offsets) = 0;
  virtual void put(std::uint64_t number, std::span<const std::uint32_t> offsets) = 0;
};

class StepPlans {
 public:
  // REQUIRES: rank < the roster's world.
  StepPlans(BalancedAssignment assignment, std::uint32_t rank) : assignment_(std::move(assignment)), rank_(rank) {}
  // Before anything else: others of the host may have planned a step already.
  void share(std::unique_ptr<StepShare> share) { share_ = std::move(share); }
  std::uint64_t max_host_count() const;  // of all learners of this rank's host, over the steps of an epoch

  using Positions = std::shared_ptr<const std::vector<Position>>;
  Positions positions(Epoch epoch, std::uint64_t step) const FORELOAD_EXCLUDES(mutex_);
  std::uint64_t count(std::uint64_t step) const { return assignment_.count(step, rank_); }
  std::uint64_t max_count() const;  // over the steps of an epoch
  Bytes bytes() const;              // of memory, at most

  const BalancedAssignment& assignment() const { return assignment_; }

 private:
  static constexpr std::size_t kRemembered = 256;
  struct Remembered {
    Epoch epoch = 0;
    std::uint64_t step = 0;
    Positions positions{};
  };

  std::uint64_t host_count(std::uint64_t step) const;
  // Offsets of this learner, ascending; nothing: nobody has shared the step, or wrongly.
  std::optional<std::vector<std::uint32_t>> find_shared(std::uint64_t number, std::uint64_t step) const;
  std::vector<std::uint32_t> plan(std::uint64_t number, Epoch epoch, std::uint64_t step) const
      FORELOAD_EXCLUDES(mutex_);

  BalancedAssignment assignment_;
  std::uint32_t rank_;
  std::unique_ptr<StepShare> share_;
  mutable Mutex mutex_;
  mutable BalancedStep step_ FORELOAD_GUARDED_BY(mutex_);
  mutable std::array<Remembered, kRemembered> remembered_ FORELOAD_GUARDED_BY(mutex_);
};

}  // namespace foreload
