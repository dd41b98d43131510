// Systems that are another order: local shuffle (DeepIO), partial re-shuffle, data echoing. The orders are the
// product's; samples stay with the host that read them first.
#include "lab/host_rooms.h"
#include "lab/sliced_system.h"
#include "lab/systems.h"

namespace foreload {
namespace {

// `reshuffle` 0: nothing moves between the learners.
ScheduleOptions partial_shuffle(const ClusterSetup& setup, double reshuffle) {
  ScheduleOptions order;
  order.reshuffle = reshuffle;
  order.homes = setup.job_world();
  return order;
}

ScheduleOptions echoed(const ClusterSetup& setup) {
  ScheduleOptions order;
  order.echo = setup.echo;
  order.echo_window = setup.global_batch();
  return order;
}

class PartialShuffle : public SlicedSystem {
 public:
  PartialShuffle(const SystemScene& scene, double reshuffle)
      : SlicedSystem(scene, partial_shuffle(scene.setup, reshuffle)), homes_(scene) {}
  SystemTraits traits() const override { return {.exactly_once = false}; }
  void forget(HostIndex host) override { homes_.forget(host); }

 private:
  Found find(const Look& look) override {
    const std::uint16_t home = homes_.find_or_keep(look.id, look.host);
    if (home == FirstHomes::kNobody) return {KeptAt::kStorage};
    return home == look.host ? Found{KeptAt::kMemory} : Found{KeptAt::kPeer, home};
  }

  FirstHomes homes_;
};

// A window of samples is read once; the repeats come out of memory, wherever in the window they stand.
class Echo : public SlicedSystem {
 public:
  explicit Echo(const SystemScene& scene) : SlicedSystem(scene, echoed(scene.setup)), read_in_(scene.setup.hosts) {
    for (auto& one : read_in_) one.assign(setup().samples, kNever);
  }
  SystemTraits traits() const override { return {.blocks_workers = true, .exactly_once = false}; }

 private:
  static constexpr std::uint32_t kNever = 0xffffffff;

  Found find(const Look& look) override {
    if (setup().echo == 1) return {KeptAt::kStorage};
    const std::uint64_t blocks = schedule().size() / setup().echo / setup().global_batch() + 1;
    const std::uint64_t block = look.epoch * blocks + schedule().block_of(look.position);
    std::uint32_t& last = read_in_[look.host][look.id];
    if (last == static_cast<std::uint32_t>(block)) return {KeptAt::kMemory};
    last = static_cast<std::uint32_t>(block);
    return {KeptAt::kStorage};
  }

  std::vector<std::vector<std::uint32_t>> read_in_;  // by host and sample: the block, over all epochs
};

}  // namespace

std::unique_ptr<LoadingSystem> make_local(const SystemScene& scene) {
  return std::make_unique<PartialShuffle>(scene, 0);
}

std::unique_ptr<LoadingSystem> make_partial(const SystemScene& scene) {
  return std::make_unique<PartialShuffle>(scene, scene.setup.reshuffle);
}

std::unique_ptr<LoadingSystem> make_echo(const SystemScene& scene) {
  return std::make_unique<Echo>(scene);
}

}  // namespace foreload
