#include "plan/step_plans.h"

#include <algorithm>

namespace foreload {

// All steps but the last have the same length.
std::uint64_t StepPlans::max_count() const {
  const std::uint64_t steps = assignment_.slice().batches_per_epoch();
  return steps == 0 ? 0 : std::max(count(0), count(steps - 1));
}

Bytes StepPlans::bytes() const {
  // Of a sample of a global batch while it is planned: what BalancedStep and UnitDealing have by offset and unit.
  constexpr Bytes kPlanned = 64;
  const SliceAssignment& slice = assignment_.slice();
  return assignment_.bytes() + slice.shape().global_batch * kPlanned +
         kRemembered * (sizeof(std::vector<Position>) + max_count() * sizeof(Position));
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
std::optional<std::vector<std::uint32_t>> StepPlans::find_shared(std::uint64_t number, std::uint64_t step) const {
  if (!share_) return std::nullopt;
  std::vector<std::uint32_t> shared(host_count(step));
  if (!share_->find(number, shared)) return std::nullopt;
  const Roster& roster = assignment_.roster();
  std::uint64_t before = 0;
  for (std::uint32_t rank = roster.first_rank(roster.host_of(rank_)); rank < rank_; ++rank) {
    before += assignment_.count(step, rank);
  }
  const auto begin = shared.begin() + static_cast<std::ptrdiff_t>(before);
  std::vector<std::uint32_t> own(begin, begin + static_cast<std::ptrdiff_t>(count(step)));
  const bool ascends = std::ranges::adjacent_find(own, std::ranges::greater_equal()) == own.end();
  const bool fits = own.empty() || own.back() < assignment_.slice().shape().global_batch;
  return ascends && fits ? std::optional(std::move(own)) : std::nullopt;
}

std::vector<std::uint32_t> StepPlans::plan(std::uint64_t number, Epoch epoch, std::uint64_t step) const {
  MutexLock lock(mutex_);
  assignment_.plan(epoch, step, step_);
  const std::span<const std::uint32_t> planned = step_.offsets(rank_);
  std::vector<std::uint32_t> own(planned.begin(), planned.end());
  if (!share_) return own;
  const Roster& roster = assignment_.roster();
  const HostIndex host = roster.host_of(rank_);
  std::vector<std::uint32_t> shared;
  for (std::uint32_t rank = roster.first_rank(host); rank < roster.end_rank(host); ++rank) {
    const std::span<const std::uint32_t> offsets = step_.offsets(rank);
    shared.insert(shared.end(), offsets.begin(), offsets.end());
  }
  share_->put(number, shared);
  return own;
}

// Others may be waited for, a little, so not with the lock.
StepPlans::Positions StepPlans::positions(Epoch epoch, std::uint64_t step) const {
  const SliceAssignment& slice = assignment_.slice();
  const std::uint64_t number = epoch * slice.batches_per_epoch() + step;
  {
    MutexLock lock(mutex_);
    const Remembered& place = remembered_[number % kRemembered];
    if (place.positions && place.epoch == epoch && place.step == step) return place.positions;
  }
  auto offsets = find_shared(number, step);
  if (!offsets) offsets = plan(number, epoch, step);
  auto positions = std::make_shared<std::vector<Position>>();
  for (const std::uint32_t offset : *offsets) positions->push_back(step * slice.shape().global_batch + offset);
  MutexLock lock(mutex_);
  remembered_[number % kRemembered] = {epoch, step, positions};
  return positions;
}

}  // namespace foreload
