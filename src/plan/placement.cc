// Homes are given out in the order of an epoch that is never trained on; a sample that does not fit in what
// is left is passed over. The plan is full, and ends, when less than 1/4096 of the capacity is left: while
// samples are smaller than that, the homes are a plain prefix of the order and no size is favoured.
// If all samples fit, all have a home, whatever the order. O(samples).
#include "plan/placement.h"

#include <algorithm>
#include <limits>
#include <utility>

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

// A placement while it is made: samples are offered in the order of their right to a home.
class Placement::Filling {
 public:
  Filling(std::uint64_t samples, Bytes capacity, const Footprint& footprint)
      : footprint_(footprint),
        all_(all_fit(samples, capacity, footprint)),
        capacity_(capacity),
        left_(capacity),
        least_(all_ ? 0 : full_below(capacity)) {
    placement_.home_.resize(samples);
  }

  bool all() const { return all_; }
  bool is_full() const { return left_ < least_; }
  void offer(SampleId id) {
    const Bytes bytes = footprint_(id);
    if (bytes == 0 || bytes > left_) return;
    placement_.home_[id] = true;
    placement_.homes_ += 1;
    left_ -= bytes;
  }
  Placement finish() {
    placement_.bytes_ = capacity_ - left_;
    return std::move(placement_);
  }

 private:
  const Footprint& footprint_;
  const bool all_;
  const Bytes capacity_;
  Bytes left_;
  const Bytes least_;
  Placement placement_;
};

Placement Placement::plan(std::uint64_t samples, Bytes capacity, std::uint64_t seed, const Footprint& footprint) {
  return plan_below({}, samples, capacity, seed, footprint);
}

Placement Placement::plan_below(const Placement& above, std::uint64_t samples, Bytes capacity, std::uint64_t seed,
                                const Footprint& footprint) {
  Filling filling(samples, capacity, footprint);
  const Schedule order({.samples = samples, .seed = seed, .shuffle = !filling.all()});
  const auto place = [&](bool copies) {
    for (Position position = 0; position < samples && !filling.is_full(); ++position) {
      const SampleId id = order.sample_at(kPlacementEpoch, position);
      if (above.is_home(id) == copies) filling.offer(id);
    }
  };
  place(false);
  if (above.homes() > 0) place(true);
  return filling.finish();
}

Placement Placement::plan_most_used(std::span<const std::uint16_t> uses, Bytes capacity, std::uint64_t seed,
                                    const Footprint& footprint) {
  Filling filling(uses.size(), capacity, footprint);
  std::vector<SampleId> ids = placement_order(uses.size(), seed);
  std::ranges::stable_sort(ids, [&](SampleId a, SampleId b) { return uses[a] > uses[b]; });
  for (std::size_t i = 0; i < ids.size() && !filling.is_full(); ++i) filling.offer(ids[i]);
  return filling.finish();
}

std::vector<SampleId> placement_order(std::uint64_t samples, std::uint64_t seed) {
  const Schedule order({.samples = samples, .seed = seed});
  std::vector<SampleId> ids(samples);
  for (Position position = 0; position < samples; ++position)
    ids[position] = order.sample_at(kPlacementEpoch, position);
  return ids;
}

Bytes full_below(Bytes capacity) {
  return std::max<Bytes>(1, capacity / kFullShare);
}

bool Placement::is_home(SampleId id) const {
  return id < home_.size() && home_[id];
}

}  // namespace foreload
