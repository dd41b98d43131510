// Order: the strategies behind a Schedule, one file each. Pure and immutable. The options were checked by Schedule.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "foreload/schedule.h"
#include "foreload/types.h"

namespace foreload {

class Order {
 public:
  virtual ~Order() = default;
  virtual SampleId sample_at(Epoch epoch, Position position) const = 0;
  // At `first`, `first` + 1, …
  virtual void samples_at(Epoch epoch, Position first, std::span<SampleId> out) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = sample_at(epoch, first + i);
  }
  // Only of orders that are permutations.
  virtual Position position_of(Epoch epoch, SampleId id) const = 0;
};

// Every sample once: shuffled, or in order.
std::unique_ptr<Order> full_order(const ScheduleOptions& options);
// Draws with replacement.
std::unique_ptr<Order> weighted_order(const ScheduleOptions& options);
// Every sample once; most stay in their home.
std::unique_ptr<Order> partial_order(const ScheduleOptions& options);
// Each of the `positions` of `base` several times.
std::unique_ptr<Order> echo_order(const ScheduleOptions& options, std::unique_ptr<Order> base, std::uint64_t positions);

inline constexpr std::uint64_t kMostHomes = 1 << 20;  // of a partial order

// A share of 0 … 1 in units of 2^-32, cut off: what `reshuffle` means.
std::uint64_t fixed_share(double share);

// One weighted draw: the sample at a position (k = 0), or its k-th substitute.
SampleId weighted_draw(const ScheduleOptions& options, Epoch epoch, Position position, unsigned k);

// Ops of a chain count from 0 upwards; draws from here downwards: k = 0 is a weighted position, k ≥ 1 its substitutes.
constexpr std::uint32_t kDrawOp = 0xffffffff;

}  // namespace foreload
