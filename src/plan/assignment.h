// Assignment: which learner takes which positions of a global batch, and how many global batches an
// epoch has. Pure; alike on every rank.
#pragma once

#include "foreload/loader.h"
#include "foreload/schedule.h"

namespace foreload {

struct JobShape {
  std::uint64_t samples = 0;  // of an epoch: what the schedule has positions for
  std::uint64_t global_batch = 1;
  std::uint32_t world = 1;
  LastBatch last_batch = LastBatch::kAuto;
  std::uint64_t unit = 1;  // consecutive samples that one rank takes together; 2: they are mixed with each other
};

// Positions that one rank takes of a global batch.
struct Share {
  Position first = 0;
  std::uint64_t count = 0;  // they are consecutive
};

// `slice`: rank r of W takes positions ⌊rL/W⌋ … ⌊(r+1)L/W⌋-1 of a global batch of L samples. With a unit of 2 the same
// holds for pairs; the last one of a ragged epoch may be a single sample.
class SliceAssignment {
 public:
  // REQUIRES: global_batch > 0, world > 0, unit > 0 and divides global_batch.
  explicit SliceAssignment(const JobShape& shape);

  const JobShape& shape() const { return shape_; }
  std::uint64_t positions_per_epoch() const { return positions_; }  // N, less dropped, plus padded
  std::uint64_t padded() const;                                     // positions ≥ N
  std::uint64_t batches_per_epoch() const { return batches_; }      // equal for all ranks
  std::uint64_t batch_size(std::uint64_t step) const;               // of the global batch
  std::uint64_t max_share() const;                                  // most samples a rank gets in a step
  // REQUIRES: step < batches_per_epoch(), rank < world.
  Share share(std::uint64_t step, std::uint32_t rank) const;
  // The inverse: who takes the position. REQUIRES: position < positions_per_epoch().
  std::uint32_t rank_of(Position position) const;
  // The position in the schedule that stands at `position`: padded ones repeat the epoch's beginning.
  // REQUIRES: position < positions_per_epoch().
  Position source_position(Position position) const;

 private:
  JobShape shape_;
  std::uint64_t positions_ = 0;
  std::uint64_t batches_ = 0;
};

// Where slice `part` of `parts` begins in `length` places: ⌊part · length / parts⌋. REQUIRES: part ≤ parts.
std::uint64_t slice_begin(std::uint64_t length, std::uint64_t part, std::uint64_t parts);

const char* rule_name(LastBatch rule);  // "auto", "ragged", …

// The hash that a State carries: (shuffle, last-batch rule, sampling, global batch). It is the sum of two parts, so
// that what differs between two plans can be found for each alone.
std::uint64_t plan_hash(const ScheduleOptions& schedule, const JobShape& shape);
std::uint64_t shape_hash(bool shuffle, const JobShape& shape);
std::uint64_t sampling_hash(const ScheduleOptions& schedule);  // 0: every sample once, in a full shuffle or in order

}  // namespace foreload
