// With W ranks a sample is this rank's in every W-th epoch on average. After 8·W epochs it would have come with a
// probability of 0.9997: the rare rest is taken for never, which costs a hit and not more.
#include "policy/next_use.h"

#include <algorithm>

namespace foreload {
namespace {

constexpr Epoch kEpochsPerRank = 8;
constexpr std::uint64_t kDrawsPerSample = 4;  // docs/design/eviction.md: more bring next to nothing
constexpr std::uint64_t kFewDraws = 1024;     // cost nothing: short runs over few samples are known to their end

std::uint64_t samples_of(const Stream& stream) {
  return stream.schedule().options().samples;
}

std::uint64_t window_length(const Stream& stream, std::uint64_t longest) {
  return std::min(std::max(kDrawsPerSample * samples_of(stream), kFewDraws), longest);
}

}  // namespace

NextUse::NextUse(const Stream& stream, std::uint64_t longest_window) : stream_(stream) {
  if (!stream.schedule().is_permutation()) window_.emplace(stream, window_length(stream, longest_window));
}

Bytes NextUse::bytes_for(const Stream& stream) {
  if (stream.schedule().is_permutation()) return 0;
  return DrawWindow::bytes_for(samples_of(stream), window_length(stream, kLongestWindow));
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
  return window_->next(id).value_or(beyond_window(id));
}

// A draw does not remember the last one: what is rarer is expected later, however long ago it came.
Moment NextUse::beyond_window(SampleId id) const {
  if (window_->has_ended()) return kNever;
  const WeightTable* weights = stream_.schedule().options().weights.get();
  return weights == nullptr ? kNotSoon : kNotSoon + (weights->total() - weights->weight(id));
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
    for (Position p = stream_.schedule().position_of(epoch, id); p < positions; p += stream_.schedule().size()) {
      const Moment moment = epoch * positions + p;
      if (moment >= from_ && assignment.rank_of(p) == stream_.rank()) return moment;
    }
  }
  return kNever;
}

}  // namespace foreload
