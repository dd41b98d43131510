#include "lab/sliced_system.h"

namespace foreload {
namespace {

ScheduleOptions with_data(ScheduleOptions order, const ClusterSetup& setup, std::uint64_t job) {
  constexpr std::uint64_t kJobSeeds = 0x9e3779b97f4a7c15;
  order.samples = setup.samples;
  order.seed = setup.seed + job * kJobSeeds;
  order.global_batch = setup.global_batch();
  return order;
}

}  // namespace

JobShape job_shape(const ClusterSetup& setup, std::uint64_t positions) {
  return {.samples = positions,
          .global_batch = setup.global_batch(),
          .world = static_cast<std::uint32_t>(setup.job_world()),
          .last_batch = LastBatch::kAuto};
}

SlicedSystem::SlicedSystem(const SystemScene& scene, const ScheduleOptions& order)
    : scene_(scene),
      schedules_{Schedule(with_data(order, scene.setup, 0))},
      slices_(job_shape(scene.setup, schedules_[0].size())) {
  for (std::uint64_t job = 1; job < setup().jobs; ++job) schedules_.emplace_back(with_data(order, setup(), job));
}

void SlicedSystem::plan(Epoch epoch, std::uint64_t step, const Reach& reach, StepLoads& out) {
  const std::uint64_t per_host = ranks_per_host();
  const std::uint64_t streams = traits().prepares_once ? 1 : setup().jobs;
  const bool pools = traits().pools_host;
  for (HostIndex host = 0; host < setup().hosts; ++host) {
    for (std::uint64_t job = 0; job < streams; ++job) {
      for (std::uint64_t learner = 0; learner < per_host; ++learner) {
        const Look look{.feeder = pools ? host : host * per_host * streams + job * per_host + learner,
                        .host = host,
                        .rank = static_cast<std::uint32_t>(host * per_host + learner),
                        .epoch = epoch};
        plan_rank(schedules_[job], look, step, reach, out);
      }
    }
  }
}

void SlicedSystem::plan_rank(const Schedule& schedule, Look look, std::uint64_t step, const Reach& reach,
                             StepLoads& out) {
  const Share share = slices_.share(step, look.rank);
  ids_.resize(share.count);
  if (share.first + share.count <= schedule.size()) {
    schedule.samples_at(look.epoch, share.first, ids_);
  } else {
    for (std::uint64_t i = 0; i < share.count; ++i)
      ids_[i] = schedule.sample_at(look.epoch, slices_.source_position(share.first + i));
  }
  Load& load = out.feeders[look.feeder];
  for (std::uint64_t i = 0; i < share.count; ++i) {
    look.id = ids_[i];
    look.position = share.first + i;
    out.took(look.feeder, look.position, look.id);
    Found found = find(look);
    const Bytes length = scene_.lengths[look.id];
    if (found.place == KeptAt::kPeer && !(reach.is_up(found.peer) && reach.is_up(look.host)))
      found.place = KeptAt::kStorage;
    load.at(found.place).add(length);
    if (found.place == KeptAt::kPeer) out.sent[found.peer].add(length);
  }
}

}  // namespace foreload
