// Homes are given out in the order of an epoch that is never trained on; a sample that does not fit in what
// is left is passed over. The plan is full, and ends, when less than 1/4096 of the capacity is left: while
// samples are smaller than that, the homes are a plain prefix of the order and no size is favoured.
// If all samples fit, all have a home, whatever the order. O(samples).
#include "plan/placement.h"

#include <algorithm>
#include <limits>

#include "foreload/schedule.h"

namespace foreload {

namespace {

constexpr Epoch kPlacementEpoch = std::numeric_limits<Epoch>::max();
constexpr Bytes kFullShare = 4096;

using Footprint = std::function<Bytes(SampleId)>;

bool all_fit(std::uint64_t samples, Bytes capacity, const Footprint& footprint) {
  for (SampleId id = 0; id < samples; ++id) {
    const Bytes bytes = footprint(id);
    if (bytes > capacity) return false;
    capacity -= bytes;
  }
  return true;
}

}  // namespace

Placement Placement::plan(std::uint64_t samples, Bytes capacity, std::uint64_t seed, const Footprint& footprint) {
  return plan_below({}, samples, capacity, seed, footprint);
}

Placement Placement::plan_below(const Placement& above, std::uint64_t samples, Bytes capacity, std::uint64_t seed,
                                const Footprint& footprint) {
  const bool all = all_fit(samples, capacity, footprint);
  const Bytes least = all ? 0 : std::max<Bytes>(1, capacity / kFullShare);
  const Schedule order({.samples = samples, .seed = seed, .shuffle = !all});
  Placement placement;
  placement.home_.resize(samples);
  Bytes left = capacity;
  const auto place = [&](bool copies) {
    for (Position position = 0; position < samples && left >= least; ++position) {
      const SampleId id = order.sample_at(kPlacementEpoch, position);
      if (above.is_home(id) != copies) continue;
      const Bytes bytes = footprint(id);
      if (bytes == 0 || bytes > left) continue;
      placement.home_[id] = true;
      placement.homes_ += 1;
      left -= bytes;
    }
  };
  place(false);
  if (above.homes() > 0) place(true);
  placement.bytes_ = capacity - left;
  return placement;
}

bool Placement::is_home(SampleId id) const {
  return id < home_.size() && home_[id];
}

}  // namespace foreload
