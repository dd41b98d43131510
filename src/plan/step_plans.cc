#include "plan/step_plans.h"

#include <algorithm>

namespace foreload {

// All steps but the last have the same length.
std::uint64_t StepPlans::max_count() const {
  const std::uint64_t steps = assignment_.slice().batches_per_epoch();
  return steps == 0 ? 0 : std::max(count(0), count(steps - 1));
}

std::uint64_t StepPlans::max_host_count() const {
  const std::uint64_t steps = assignment_.slice().batches_per_epoch();
  return steps == 0 ? 0 : std::max(host_count(0), host_count(steps - 1));
}

std::uint64_t StepPlans::host_count(std::uint64_t step) const {
  const Roster& roster = assignment_.roster();
  const HostIndex host = roster.host_of(rank_);
  std::uint64_t sum = 0;
  for (std::uint32_t rank = roster.first_rank(host); rank < roster.end_rank(host); ++rank) {
    sum += assignment_.count(step, rank);
  }
  return sum;
}

// Whoever shared it is another process: what can not be a learner's offsets is not taken.
bool StepPlans::find_shared(std::uint64_t number, std::uint64_t step) const {
  shared_.resize(host_count(step));
  if (!share_ || !share_->find(number, shared_)) return false;
  const Roster& roster = assignment_.roster();
  std::uint64_t before = 0;
  for (std::uint32_t rank = roster.first_rank(roster.host_of(rank_)); rank < rank_; ++rank) {
    before += assignment_.count(step, rank);
  }
  const auto begin = shared_.begin() + static_cast<std::ptrdiff_t>(before);
  own_.assign(begin, begin + static_cast<std::ptrdiff_t>(count(step)));
  const bool ascends = std::ranges::adjacent_find(own_, std::ranges::greater_equal()) == own_.end();
  return ascends && (own_.empty() || own_.back() < assignment_.slice().shape().global_batch);
}

void StepPlans::plan(std::uint64_t number, Epoch epoch, std::uint64_t step) const {
  assignment_.plan(epoch, step, step_);
  const std::span<const std::uint32_t> own = step_.offsets(rank_);
  own_.assign(own.begin(), own.end());
  if (!share_) return;
  const Roster& roster = assignment_.roster();
  const HostIndex host = roster.host_of(rank_);
  shared_.clear();
  for (std::uint32_t rank = roster.first_rank(host); rank < roster.end_rank(host); ++rank) {
    const std::span<const std::uint32_t> offsets = step_.offsets(rank);
    shared_.insert(shared_.end(), offsets.begin(), offsets.end());
  }
  share_->put(number, shared_);
}

StepPlans::Positions StepPlans::positions(Epoch epoch, std::uint64_t step) const {
  const SliceAssignment& slice = assignment_.slice();
  const std::uint64_t number = epoch * slice.batches_per_epoch() + step;
  MutexLock lock(mutex_);
  Remembered& place = remembered_[number % kRemembered];
  if (place.positions && place.epoch == epoch && place.step == step) return place.positions;
  if (!find_shared(number, step)) plan(number, epoch, step);
  auto positions = std::make_shared<std::vector<Position>>();
  for (const std::uint32_t offset : own_) positions->push_back(step * slice.shape().global_batch + offset);
  place = {epoch, step, std::move(positions)};
  return place.positions;
}

}  // namespace foreload
