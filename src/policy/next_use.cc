// With W ranks a sample is this rank's in every W-th epoch on average. After 8·W epochs it would have come with a
// probability of 0.9997: the rare rest is taken for never, which costs a hit and not more.
#include "policy/next_use.h"

#include <algorithm>
#include <bit>

namespace foreload {
namespace {

constexpr Epoch kEpochsPerRank = 8;

}  // namespace

NextUse::NextUse(const Stream& stream) : stream_(stream) {}

Bytes NextUse::bytes_for(const Stream&) {
  return 0;
}

void NextUse::restart(Moment now) {
  from_ = now;
  sighted_.clear();
  if (window_) window_->restart(now);
}

void NextUse::advance(Moment now) {
  from_ = now + 1;
  sighted_.clear();
  if (window_) window_->advance(from_, sighted_);
}

Moment NextUse::of(SampleId id) const {
  if (!window_) return in_permutations(id);
  return window_->next(id).value_or(kNotSoon);
}

Moment NextUse::in_permutations(SampleId id) const {
  const SliceAssignment& assignment = stream_.assignment();
  const JobShape& shape = assignment.shape();
  const std::uint64_t positions = assignment.positions_per_epoch();
  const Epoch first = from_ / positions;
  const Epoch bound = first + 1 + kEpochsPerRank * shape.world;
  const Epoch end = stream_.epochs() == 0 ? bound : std::min(bound, stream_.epochs());
  for (Epoch epoch = first; epoch < end; ++epoch) {
    // Padded positions repeat the epoch from its beginning.
    for (Position p = stream_.schedule().position_of(epoch, id); p < positions; p += shape.samples) {
      const Moment moment = epoch * positions + p;
      if (moment >= from_ && assignment.rank_of(p) == stream_.rank()) return moment;
    }
  }
  return kNever;
}

}  // namespace foreload
