// Schedule: which sample stands at which position of an epoch. A pure function of the options and the epoch: no state,
// random access, the same on every machine and in every release (golden vectors in schedule_test.cc and order_test.cc).
// By default every sample stands in an epoch once; weights, echo and reshuffle relax that: docs/design/order.md.
// Copies are cheap. Any thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

// How often each sample is drawn, relative to the others: a running sum of 64-bit fixed-point numbers, 8 bytes per
// sample. A weight is rounded by less than one part in 2^61 of their sum, and one above 0 never to 0.
class WeightTable {
 public:
  // kInvalid names the first weight that is negative or no finite number; also for none, or none above 0.
  static Result<WeightTable> create(std::span<const double> weights);

  std::uint64_t size() const { return ends_.size(); }
  std::uint64_t total() const { return ends_.back(); }
  // Of `total()`. REQUIRES: id < size().
  std::uint64_t weight(SampleId id) const { return ends_[id] - (id == 0 ? 0 : ends_[id - 1]); }
  // The sample in whose part of the sum `number` lies. O(log N). REQUIRES: number < total().
  SampleId find(std::uint64_t number) const;
  std::uint64_t hash() const { return hash_; }

 private:
  explicit WeightTable(std::vector<std::uint64_t> ends);

  std::vector<std::uint64_t> ends_;
  std::uint64_t hash_;
};

struct ScheduleOptions {
  std::uint64_t samples = 0;
  std::uint64_t seed = 0;
  bool shuffle = true;                           // false: position = id in every epoch
  std::shared_ptr<const WeightTable> weights{};  // draws with replacement; null: every sample once
  std::uint64_t epoch_samples = 0;               // draws per epoch; 0: as many as samples
  std::uint64_t echo = 1;                        // how often each sample comes in an epoch
  std::uint64_t echo_window = 0;                 // that many samples are repeated together
  double reshuffle = 1;                          // share of the samples that an epoch deals to any home
  std::uint64_t homes = 1;                       // slices of a global batch between which the others do not move
  std::uint64_t global_batch = 1;                // what homes are slices of
};

class Order;

class Schedule {
 public:
  // REQUIRES: the weights are as many as the samples; weights and reshuffle < 1 are not with each other, nor either
  // with shuffle = false, nor reshuffle < 1 with echo; with echo > 1 a window.
  explicit Schedule(const ScheduleOptions& options);

  std::uint64_t size() const { return size_; }  // positions of an epoch
  const ScheduleOptions& options() const { return options_; }
  bool is_permutation() const { return options_.weights == nullptr && options_.echo == 1; }

  // REQUIRES: position < size().
  SampleId sample_at(Epoch epoch, Position position) const;
  // At `first` and the positions after it; about three times as fast. REQUIRES: first + out.size() ≤ size().
  void samples_at(Epoch epoch, Position first, std::span<SampleId> out) const;
  // The inverse. REQUIRES: is_permutation(), id < size().
  Position position_of(Epoch epoch, SampleId id) const;
  // The k-th substitute (k ≥ 1) for a bad sample at `position`: any sample, with weights one of theirs; alike on every
  // rank.
  SampleId substitute(Epoch epoch, Position position, unsigned k) const;
  // All repeats of an echoed sample stand in one block. REQUIRES: echo > 1.
  std::uint64_t block_of(Position position) const { return position / options_.echo_window / options_.echo; }

 private:
  ScheduleOptions options_;
  std::uint64_t size_;
  std::shared_ptr<const Order> order_;
};

}  // namespace foreload
