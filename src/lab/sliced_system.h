// SlicedSystem: the common part of systems whose learners take slices of each global batch, as DistributedSampler
// deals them. They only say where a learner finds a sample. Several jobs go over the data at once, each in its own
// order, unless they share one stream.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/loading_system.h"

namespace foreload {

// One look at a sample.
struct Look {
  std::size_t feeder = 0;
  HostIndex host = 0;      // whose learner it is
  std::uint32_t rank = 0;  // in its job
  SampleId id = 0;
  Epoch epoch = 0;
  Position position = 0;
};

struct Found {
  KeptAt place = KeptAt::kStorage;
  HostIndex peer = 0;  // who sends it, with kPeer
};

class SlicedSystem : public LoadingSystem {
 public:
  std::uint64_t steps_per_epoch() const override { return slices_.batches_per_epoch(); }
  void plan(Epoch epoch, std::uint64_t step, const Reach& reach, StepLoads& out) override;

 protected:
  // `order`: beside samples and seed, which the scene has.
  SlicedSystem(const SystemScene& scene, const ScheduleOptions& order);
  explicit SlicedSystem(const SystemScene& scene) : SlicedSystem(scene, ScheduleOptions{}) {}

  // In the order of the stream; a cache takes its decisions here.
  virtual Found find(const Look& look) = 0;

  const SystemScene& scene() const { return scene_; }
  const ClusterSetup& setup() const { return scene_.setup; }
  const Schedule& schedule(std::uint64_t job = 0) const { return schedules_[job]; }
  const SliceAssignment& slices() const { return slices_; }
  std::uint64_t ranks_per_host() const { return setup().learners / setup().jobs; }

 private:
  void plan_rank(const Schedule& schedule, Look look, std::uint64_t step, const Reach& reach, StepLoads& out);

  const SystemScene& scene_;
  std::vector<Schedule> schedules_;  // by job
  SliceAssignment slices_;
  std::vector<SampleId> ids_;
};

// How the slices of a job are cut.
JobShape job_shape(const ClusterSetup& setup, std::uint64_t positions);

}  // namespace foreload
