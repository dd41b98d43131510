// What the runtime does. One host: homes by plan/placement, chosen by the seed. Several: roster, host placement and
// balanced assignment, exactly as a loader over hosts plans them; a sample that its home has not read yet is read by
// the home and sent on, so that storage gives every byte once per job. Workers serve all learners of a host; jobs on
// the same data share one stream; batches of the next epoch are loaded while one ends. How far ahead is the pacer's
// word.
#include <optional>

#include "lab/sliced_system.h"
#include "lab/systems.h"
#include "plan/balanced.h"
#include "plan/placement.h"
#include "policy/pacing.h"

namespace foreload {
namespace {

constexpr unsigned kRingSlots = 4;

SystemTraits runtime_traits(const ClusterSetup& setup) {
  const Pacer pacer({.batch = setup.batch * setup.learners / setup.jobs, .slots = kRingSlots});
  return {.pools_host = true,
          .prepares_once = true,
          .crosses_epochs = true,
          .ahead = kRingSlots + static_cast<unsigned>(pacer.lookahead_batches())};
}

class OneHost : public SlicedSystem {
 public:
  explicit OneHost(const SystemScene& scene)
      : SlicedSystem(scene),
        memory_(Placement::plan(setup().samples, setup().cache, setup().seed, footprint(scene))),
        disk_(Placement::plan_below(memory_, setup().samples, setup().disk, setup().seed, footprint(scene))),
        in_memory_(setup().samples),
        on_disk_(setup().samples) {}
  SystemTraits traits() const override { return runtime_traits(setup()); }
  void forget(HostIndex) override { in_memory_.assign(setup().samples, false); }

 private:
  static std::function<Bytes(SampleId)> footprint(const SystemScene& scene) {
    return [&scene](SampleId id) { return scene.footprint(id); };
  }

  Found find(const Look& look) override {
    const KeptAt place = in_memory_[look.id] ? KeptAt::kMemory : on_disk_[look.id] ? KeptAt::kDisk : KeptAt::kStorage;
    if (memory_.is_home(look.id)) in_memory_[look.id] = true;
    if (disk_.is_home(look.id)) on_disk_[look.id] = true;
    return {place};
  }

  Placement memory_;
  Placement disk_;
  std::vector<bool> in_memory_;  // of the homes, what has been read
  std::vector<bool> on_disk_;
};

Roster roster_of(const ClusterSetup& setup) {
  const RosterHost host{
      .learners = static_cast<std::uint32_t>(setup.learners / setup.jobs), .memory = setup.cache, .disk = setup.disk};
  auto roster = Roster::create(std::vector<RosterHost>(setup.hosts, host));
  return *std::move(roster);  // check_cluster() has the same limits
}

class ManyHosts : public LoadingSystem {
 public:
  explicit ManyHosts(const SystemScene& scene)
      : scene_(scene),
        schedule_(
            {.samples = scene.setup.samples, .seed = scene.setup.seed, .global_batch = scene.setup.global_batch()}),
        plans_(schedule_, SliceAssignment(job_shape(scene.setup, schedule_.size())), roster_of(scene.setup),
               HostPlacement::plan(scene.setup.samples, scene.setup.seed, roster_of(scene.setup),
                                   [&scene](SampleId id) { return scene.footprint(id); }),
               [&scene](SampleId id) { return scene.lengths[id]; }),
        here_(scene.setup.samples) {}
  SystemTraits traits() const override { return runtime_traits(scene_.setup); }
  std::uint64_t steps_per_epoch() const override { return plans_.slice().batches_per_epoch(); }

  void plan(Epoch epoch, std::uint64_t step, const Reach& reach, StepLoads& out) override {
    plans_.plan(epoch, step, step_);
    const Position first = step * plans_.slice().shape().global_batch;
    const Roster& roster = plans_.roster();
    for (HostIndex host = 0; host < roster.hosts().size(); ++host) {
      for (std::uint32_t rank = roster.first_rank(host); rank < roster.end_rank(host); ++rank) {
        for (const std::uint32_t offset : step_.offsets(rank)) {
          const SampleId id = step_.samples()[offset];
          out.took(host, first + offset, id);
          load(host, id, reach, out);
        }
      }
    }
  }

  void forget(HostIndex host) override {
    for (SampleId id = 0; id < here_.size(); ++id) {
      if (plans_.placement().home(id) == Home(host, HomeTier::kMemory)) here_[id] = false;
    }
  }

 private:
  void load(HostIndex host, SampleId id, const Reach& reach, StepLoads& out) {
    const Home home = plans_.placement().home(id);
    const Bytes length = scene_.lengths[id];
    const bool own = home.exists() && home.host() == host;
    if (!home.exists() || (!own && !(reach.is_up(home.host()) && reach.is_up(host)))) {
      out.feeders[host].at(KeptAt::kStorage).add(length);
      return;
    }
    const bool on_disk = home.tier() == HomeTier::kDisk;
    const bool was_here = here_[id];
    here_[id] = true;
    if (own) {
      out.feeders[host].at(!was_here ? KeptAt::kStorage : on_disk ? KeptAt::kDisk : KeptAt::kMemory).add(length);
      return;
    }
    out.feeders[host].at(KeptAt::kPeer).add(length);
    out.sent[home.host()].add(length);
    if (!was_here) {
      out.feeders[home.host()].at(KeptAt::kStorage).add(length);
      out.feeders[home.host()].for_others.add(length);
    } else if (on_disk) {
      out.sent_from_disk[home.host()].add(length);
    }
  }

  const SystemScene& scene_;
  Schedule schedule_;
  BalancedAssignment plans_;
  BalancedStep step_;
  std::vector<bool> here_;  // its home has read it
};

}  // namespace

std::unique_ptr<LoadingSystem> make_foreload(const SystemScene& scene) {
  if (scene.setup.hosts == 1) return std::make_unique<OneHost>(scene);
  return std::make_unique<ManyHosts>(scene);
}

}  // namespace foreload
