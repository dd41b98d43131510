#include "plan/step_plans.h"

#include <algorithm>

namespace foreload {

std::uint64_t StepPlans::max_count() const {
  const std::uint64_t steps = assignment_.slice().batches_per_epoch();
  return steps == 0 ? 0 : std::max(count(0), count(steps - 1));  // all but the last have the same length
}

StepPlans::Positions StepPlans::positions(Epoch epoch, std::uint64_t step) const {
  const SliceAssignment& slice = assignment_.slice();
  MutexLock lock(mutex_);
  Remembered& place = remembered_[(epoch * slice.batches_per_epoch() + step) % kRemembered];
  if (place.positions && place.epoch == epoch && place.step == step) return place.positions;
  assignment_.plan(epoch, step, step_);
  auto positions = std::make_shared<std::vector<Position>>();
  for (const std::uint32_t offset : step_.offsets(rank_)) {
    positions->push_back(step * slice.shape().global_batch + offset);
  }
  place = {epoch, step, std::move(positions)};
  return place.positions;
}

}  // namespace foreload
