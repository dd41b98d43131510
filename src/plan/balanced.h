// BalancedAssignment: which learner takes which positions of a global batch, so that hosts consume what they are home
// of. Pure in (schedule, shape, roster, placement, lengths), integer only, alike everywhere; never in measurements or
// in what a cache holds now. The global batch as a set, and every learner's count, are those of the slices (or in
// proportion to the rates of the roster); as few units as possible are consumed away from home; then the largest
// predicted load is kept small, over hosts and over the learners of each. docs/design/assignment.md.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "foreload/schedule.h"
#include "foreload/types.h"
#include "plan/assignment.h"
#include "plan/host_placement.h"
#include "plan/roster.h"
#include "plan/unit_dealing.h"

namespace foreload {

// What a host loads for one global batch, of samples that are not its own.
struct HostLoad {
  std::uint64_t received = 0;  // from the hosts that are their homes
  Bytes received_bytes = 0;
  std::uint64_t missed = 0;  // without a home: from the source
  Bytes missed_bytes = 0;
};

// One planned global batch. To be used again for the next: it keeps its memory.
class BalancedStep {
 public:
  // Places in the global batch, ascending: position = step · global batch + offset.
  std::span<const std::uint32_t> offsets(std::uint32_t rank) const {
    return std::span(offsets_).subspan(begins_[rank], begins_[rank + 1] - begins_[rank]);
  }
  std::span<const SampleId> samples() const { return ids_; }  // by offset
  std::span<const HostLoad> loads() const { return loads_; }  // by host
  HostLoad total() const;

 private:
  friend class BalancedAssignment;

  std::vector<SampleId> ids_;
  std::vector<Home> homes_;             // by offset
  std::vector<std::uint32_t> lengths_;  // by offset
  UnitDealing dealing_;
  std::vector<std::uint32_t> begins_;  // of the ranks' offsets, and the end
  std::vector<std::uint32_t> cursors_;
  std::vector<std::uint32_t> offsets_;
  std::vector<HostLoad> loads_;
};

class BalancedAssignment {
 public:
  // `length(id)` is asked once per sample; above 4 GiB it counts as that. 4 bytes per sample, besides the placement.
  // REQUIRES: the slices' world is the roster's; the placement is for the roster and the schedule's samples; a global
  // batch has at most 2^28 samples.
  BalancedAssignment(const Schedule& schedule, const SliceAssignment& slice, Roster roster, HostPlacement placement,
                     const std::function<Bytes(SampleId)>& length);

  const SliceAssignment& slice() const { return slice_; }
  const Roster& roster() const { return roster_; }
  const HostPlacement& placement() const { return placement_; }
  Bytes bytes() const { return lengths_.size() * sizeof(lengths_[0]) + placement_.samples() * sizeof(Home); }

  // Samples of a rank in a step, whatever the epoch. With equal rates: slice().share(step, rank).count.
  // REQUIRES, in both: step < slice().batches_per_epoch(), rank < roster().world().
  std::uint64_t count(std::uint64_t step, std::uint32_t rank) const;
  void plan(Epoch epoch, std::uint64_t step, BalancedStep& out) const;

 private:
  // How a global batch of one length is divided.
  struct Division {
    std::uint64_t length = 0;
    std::vector<std::uint32_t> of_learners;  // whole units
    std::vector<std::uint32_t> of_hosts;
    std::vector<std::uint32_t> begins;  // of the ranks' samples, and the end
    std::uint32_t rest_rank = 0;        // who gets the last unit if it is not whole
  };

  Division divide(std::uint64_t length) const;
  const Division& division(std::uint64_t step) const;
  void look_up(Epoch epoch, std::uint64_t step, BalancedStep& out) const;
  void weigh_samples(BalancedStep& out) const;
  void weigh_unit(std::size_t unit, BalancedStep& out) const;
  void write(const Division& division, BalancedStep& out) const;
  std::uint16_t host_slot(Home home) const;

  // Of a block of a sample, by Home::kind().
  struct BlockCosts {
    std::uint32_t own = 0;
    std::uint32_t away = 0;
  };

  Schedule schedule_;
  SliceAssignment slice_;
  Roster roster_;
  HostPlacement placement_;
  std::vector<std::uint32_t> lengths_;
  std::array<BlockCosts, Home::kKinds> costs_;
  Division full_;
  Division last_;
};

}  // namespace foreload
