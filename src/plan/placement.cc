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

// Gives out homes in several passes, or one by one.
class Placement::Filling {
 public:
  Filling(std::uint64_t samples, Bytes capacity, std::uint64_t seed, const Footprint& footprint)
      : footprint_(footprint),
        all_(all_fit(samples, capacity, footprint)),
        order_({.samples = samples, .seed = seed, .shuffle = !all_}),
        least_(all_ ? 0 : std::max<Bytes>(1, capacity / kFullShare)),
        left_(capacity) {
    placement_.home_.resize(samples);
  }

  SampleId at(Position position) const { return order_.sample_at(kPlacementEpoch, position); }
  bool is_full() const { return left_ < least_; }
  void offer(SampleId id) {
    const Bytes bytes = footprint_(id);
    if (bytes == 0 || bytes > left_) return;
    placement_.home_[id] = true;
    placement_.homes_ += 1;
    placement_.bytes_ += bytes;
    left_ -= bytes;
  }
  template <typename Wanted>
  void pass(const Wanted& wanted) {
    for (Position position = 0; position < order_.size() && !is_full(); ++position) {
      const SampleId id = at(position);
      if (wanted(id)) offer(id);
    }
  }
  Placement end() { return std::move(placement_); }

 private:
  const Footprint& footprint_;
  bool all_;
  Schedule order_;
  Bytes least_;
  Bytes left_;
  Placement placement_;
};

Placement Placement::plan(std::uint64_t samples, Bytes capacity, std::uint64_t seed, const Footprint& footprint,
                          const std::function<bool(SampleId)>& first) {
  if (!first) return plan_below({}, samples, capacity, seed, footprint);
  Filling filling(samples, capacity, seed, footprint);
  filling.pass(first);
  filling.pass([&](SampleId id) { return !first(id); });
  return filling.end();
}

Placement Placement::plan_below(const Placement& above, std::uint64_t samples, Bytes capacity, std::uint64_t seed,
                                const Footprint& footprint) {
  Filling filling(samples, capacity, seed, footprint);
  filling.pass([&](SampleId id) { return !above.is_home(id); });
  if (above.homes() > 0) filling.pass([&](SampleId id) { return above.is_home(id); });
  return filling.end();
}

Placement Placement::plan_most_used(std::span<const std::uint16_t> uses, Bytes capacity, std::uint64_t seed,
                                    const Footprint& footprint) {
  Filling filling(uses.size(), capacity, seed, footprint);
  std::vector<SampleId> ids(uses.size());
  for (Position position = 0; position < ids.size(); ++position) ids[position] = filling.at(position);
  std::ranges::stable_sort(ids, [&](SampleId a, SampleId b) { return uses[a] > uses[b]; });
  for (std::size_t i = 0; i < ids.size() && !filling.is_full(); ++i) filling.offer(ids[i]);
  return filling.end();
}

bool Placement::is_home(SampleId id) const {
  return id < home_.size() && home_[id];
}

}  // namespace foreload
