// An epoch is P positions cut into global batches of B; every rank takes a slice of every one of them, so
// the ranks' batch counts are equal by construction. Only P depends on the last-batch rule:
//
//   ragged  P = N                    the last global batch is shorter
//   pad     P = ⌈N/W⌉·W              DistributedSampler: positions ≥ N repeat the epoch from its beginning;
//                                    with units of U samples ⌈N/UW⌉·UW, so that ranks get equally many whole ones
//   drop    P = ⌊N/B⌋·B
#include "plan/assignment.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "plan/order.h"

namespace foreload {

namespace {

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

LastBatch resolve(const JobShape& shape) {
  if (shape.last_batch != LastBatch::kAuto) return shape.last_batch;
  return shape.world == 1 ? LastBatch::kRagged : LastBatch::kPad;
}

std::uint64_t count_positions(const JobShape& shape) {
  switch (resolve(shape)) {
    case LastBatch::kPad: {
      const std::uint64_t each = shape.world == 1 ? 1 : shape.world * shape.unit;
      return divide_up(shape.samples, each) * each;
    }
    case LastBatch::kDrop:
      return shape.samples / shape.global_batch * shape.global_batch;
    default:
      return shape.samples;
  }
}

}  // namespace

// Without the product that could overflow.
std::uint64_t slice_begin(std::uint64_t length, std::uint64_t part, std::uint64_t parts) {
  return length / parts * part + length % parts * part / parts;
}

// Part of a hash that is stored: names, so that the order of the enumerators may change.
const char* rule_name(LastBatch rule) {
  switch (rule) {
    case LastBatch::kAuto:
      return "auto";
    case LastBatch::kRagged:
      return "ragged";
    case LastBatch::kPad:
      return "pad";
    case LastBatch::kDrop:
      return "drop";
  }
  FORELOAD_CHECK(false, "every last-batch rule has a name");
}

SliceAssignment::SliceAssignment(const JobShape& shape) : shape_(shape) {
  FORELOAD_CHECK(shape.global_batch > 0, "the options were checked: a global batch has samples");
  FORELOAD_CHECK(shape.world > 0, "the options were checked: a job has ranks");
  FORELOAD_CHECK(shape.unit > 0 && shape.global_batch % shape.unit == 0,
                 "the options were checked: a global batch has whole units");
  positions_ = count_positions(shape);
  batches_ = divide_up(positions_, shape.global_batch);
}

std::uint64_t SliceAssignment::padded() const {
  return positions_ > shape_.samples ? positions_ - shape_.samples : 0;
}

std::uint64_t SliceAssignment::batch_size(std::uint64_t step) const {
  FORELOAD_CHECK(step < batches_, "steps of an epoch are 0 … batches_per_epoch()-1");
  return std::min(shape_.global_batch, positions_ - step * shape_.global_batch);
}

std::uint64_t SliceAssignment::max_share() const {
  const std::uint64_t units = divide_up(std::min(shape_.global_batch, positions_), shape_.unit);
  return divide_up(units, shape_.world) * shape_.unit;
}

Share SliceAssignment::share(std::uint64_t step, std::uint32_t rank) const {
  FORELOAD_CHECK(rank < shape_.world, "ranks are 0 … world-1");
  const std::uint64_t length = batch_size(step);
  const std::uint64_t units = divide_up(length, shape_.unit);
  const std::uint64_t first = std::min(length, slice_begin(units, rank, shape_.world) * shape_.unit);
  const std::uint64_t end = std::min(length, slice_begin(units, std::uint64_t{rank} + 1, shape_.world) * shape_.unit);
  return {.first = step * shape_.global_batch + first, .count = end - first};
}

// The largest r with ⌊r·units/W⌋ ≤ u, that is r·units < (u+1)·W: ranks whose share is empty lie below it.
std::uint32_t SliceAssignment::rank_of(Position position) const {
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t step = position / shape_.global_batch;
  const std::uint64_t units = divide_up(batch_size(step), shape_.unit);
  const std::uint64_t u = (position - step * shape_.global_batch) / shape_.unit;
  return static_cast<std::uint32_t>((static_cast<Wide>(u + 1) * shape_.world - 1) / units);
}

Position SliceAssignment::source_position(Position position) const {
  FORELOAD_CHECK(position < positions_, "positions of an epoch are 0 … positions_per_epoch()-1");
  return position < shape_.samples ? position : position % shape_.samples;
}

// The rule as asked, not as resolved for this world: a state saved at one world resumes at another. Units do not count:
// they change who takes a position, not what stands there.
std::uint64_t shape_hash(bool shuffle, const JobShape& shape) {
  Hasher hasher;
  hasher.add("foreload plan 1").add(shuffle ? 1 : 0).add(rule_name(shape.last_batch));
  hasher.add("exactly-once").add(shape.global_batch);
  return hasher.value();
}

std::uint64_t sampling_hash(const ScheduleOptions& schedule) {
  std::uint64_t hash = 0;
  if (schedule.weights) {
    hash += Hasher().add("weighted").add(schedule.weights->hash()).add(schedule.epoch_samples).value();
  }
  if (schedule.echo > 1) hash += Hasher().add("echo").add(schedule.echo).add(schedule.echo_window).value();
  if (schedule.reshuffle < 1) {
    hash += Hasher().add("reshuffle").add(fixed_share(schedule.reshuffle)).add(schedule.homes).value();
  }
  return hash;
}

std::uint64_t plan_hash(const ScheduleOptions& schedule, const JobShape& shape) {
  return shape_hash(schedule.shuffle, shape) + sampling_hash(schedule);
}

}  // namespace foreload
