// Stream: one learner's batches over all epochs, numbered from the beginning of epoch 0. Pure: any number can be
// asked at any time, which is what makes seeking O(1).
#pragma once

#include <memory>
#include <vector>

#include "foreload/schedule.h"
#include "foreload/types.h"
#include "plan/assignment.h"
#include "plan/step_plans.h"

namespace foreload {

// A place in the whole run: epoch · positions per epoch + position. What policies have instead of a clock.
using Moment = std::uint64_t;

// One batch of one learner.
struct BatchPlan {
  std::uint64_t number = 0;  // in the stream, over all epochs
  Epoch epoch = 0;
  std::uint64_t step = 0;
  Position first = 0;
  std::uint64_t count = 0;
  std::shared_ptr<const std::vector<Position>> positions{};  // in rising order; null: consecutive

  Position position(std::uint64_t index) const { return positions ? (*positions)[index] : first + index; }
};

struct StreamOptions {
  std::uint32_t rank = 0;
  Epoch epochs = 0;                             // 0: without end
  std::shared_ptr<const StepPlans> balanced{};  // null: slices
};

class Stream {
 public:
  // REQUIRES: the assignment has at least one batch per epoch.
  Stream(const Schedule& schedule, const SliceAssignment& assignment, const StreamOptions& options)
      : schedule_(schedule), assignment_(assignment), options_(options) {}

  const Schedule& schedule() const { return schedule_; }
  const SliceAssignment& assignment() const { return assignment_; }      // which steps an epoch has
  const StepPlans* balanced() const { return options_.balanced.get(); }  // null: slices
  std::uint64_t max_batch() const { return balanced() != nullptr ? balanced()->max_count() : assignment_.max_share(); }
  Epoch epochs() const { return options_.epochs; }  // 0: without end
  std::uint32_t rank() const { return options_.rank; }

  std::uint64_t number_of(Epoch epoch, std::uint64_t step) const {
    return epoch * assignment_.batches_per_epoch() + step;
  }
  bool has(std::uint64_t number) const {
    return options_.epochs == 0 || number / assignment_.batches_per_epoch() < options_.epochs;
  }
  BatchPlan batch(std::uint64_t number) const {
    const std::uint64_t per_epoch = assignment_.batches_per_epoch();
    BatchPlan plan{.number = number, .epoch = number / per_epoch, .step = number % per_epoch};
    if (options_.balanced) {
      plan.positions = options_.balanced->positions(plan.epoch, plan.step);
      plan.count = plan.positions->size();
      plan.first = plan.count == 0 ? plan.step * assignment_.shape().global_batch : plan.positions->front();
      return plan;
    }
    const Share share = assignment_.share(plan.step, options_.rank);
    plan.first = share.first;
    plan.count = share.count;
    return plan;
  }
  SampleId sample(const BatchPlan& batch, std::uint64_t index) const {
    return schedule_.sample_at(batch.epoch, assignment_.source_position(batch.position(index)));
  }
  // Of the sample at `index`; of the next batch's first one when the batch is empty.
  Moment moment(const BatchPlan& batch, std::uint64_t index) const {
    return batch.epoch * assignment_.positions_per_epoch() + (batch.count == 0 ? batch.first : batch.position(index));
  }

 private:
  Schedule schedule_;
  SliceAssignment assignment_;
  StreamOptions options_;
};

}  // namespace foreload
