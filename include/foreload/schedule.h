// Schedule: which sample stands at which position of an epoch. A pure function of
// (samples, seed, epoch): no state, O(1) memory, random access in both directions, the same on
// every machine and in every release (golden vectors in schedule_test.cc).
#pragma once

#include "foreload/types.h"

namespace foreload {

struct ScheduleOptions {
  std::uint64_t samples = 0;
  std::uint64_t seed = 0;
  bool shuffle = true;  // false: position = id in every epoch
};

class Schedule {
 public:
  explicit Schedule(const ScheduleOptions& options);

  std::uint64_t size() const { return options_.samples; }
  const ScheduleOptions& options() const { return options_; }

  // REQUIRES: position < size().
  SampleId sample_at(Epoch epoch, Position position) const;
  // The inverse. REQUIRES: id < size().
  Position position_of(Epoch epoch, SampleId id) const;
  // The k-th substitute (k ≥ 1) for a bad sample at `position`: any sample, alike on every rank.
  SampleId substitute(Epoch epoch, Position position, unsigned k) const;

 private:
  ScheduleOptions options_;
};

}  // namespace foreload
