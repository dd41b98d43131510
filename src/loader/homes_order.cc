#include "loader/homes_order.h"

#include <algorithm>

namespace foreload {

std::optional<SampleId> HomesOrder::next() {
  const Schedule& order = stream_.schedule();
  while (position_ < order.size()) {
    const SampleId id = order.sample_at(0, position_++);
    if (!job_.plans || job_.is_in_memory_here(id)) return id;
  }
  return job_.plans ? next_replica() : std::nullopt;
}

std::optional<SampleId> HomesOrder::next_replica() {
  for (;;) {
    while (replicas_.empty()) {
      if (step_ == stream_.assignment().batches_per_epoch()) return std::nullopt;
      replicas_ = samples_here(step_++);
    }
    const SampleId id = replicas_.back();
    replicas_.pop_back();
    if (!job_.is_in_memory_here(id)) return id;
  }
}

// Of all learners of this host, in one step of the first epoch, the last first.
std::vector<SampleId> HomesOrder::samples_here(std::uint64_t step) {
  const SliceAssignment& slices = stream_.assignment();
  const Roster& roster = job_.plans->assignment().roster();
  std::vector<SampleId> ids;
  if (job_.balanced) job_.plans->assignment().plan(0, step, planned_);
  for (std::uint32_t rank = roster.first_rank(job_.self); rank < roster.end_rank(job_.self); ++rank) {
    if (job_.balanced) {
      for (const std::uint32_t offset : planned_.offsets(rank)) ids.push_back(planned_.samples()[offset]);
      continue;
    }
    const Share share = slices.share(step, rank);
    for (std::uint64_t i = 0; i < share.count; ++i) {
      ids.push_back(stream_.schedule().sample_at(0, slices.source_position(share.first + i)));
    }
  }
  std::ranges::reverse(ids);
  return ids;
}

}  // namespace foreload
