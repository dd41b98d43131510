// Locality-aware loading (Yang & Cong): in the first epoch hosts keep what they read; from then on, inside of each
// global batch, hosts take what they keep and surpluses move to who has too little. Who keeps what follows from the
// first reader, and every sample counts alike; dealing is the product's (plan/unit_dealing).
#include "lab/host_rooms.h"
#include "lab/sliced_system.h"
#include "lab/systems.h"
#include "plan/unit_dealing.h"

namespace foreload {
namespace {

class Locality : public SlicedSystem {
 public:
  explicit Locality(const SystemScene& scene) : SlicedSystem(scene), homes_(scene) {
    for (std::uint64_t host = 0; host <= setup().hosts; ++host)
      first_ranks_.push_back(static_cast<std::uint32_t>(host * ranks_per_host()));
  }
  SystemTraits traits() const override { return {.ahead = 4}; }
  void forget(HostIndex host) override { homes_.forget(host); }
  void plan(Epoch epoch, std::uint64_t step, const Reach& reach, StepLoads& out) override {
    if (epoch == 0 || setup().jobs > 1) return SlicedSystem::plan(epoch, step, reach, out);
    deal(epoch, step);
    const Position first = step * setup().global_batch();
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      const std::uint16_t rank = dealing_.learners()[i];
      const HostIndex host = dealing_.hosts()[i];
      const std::uint16_t home = homes_.find_or_keep(ids_[i], host);
      const Bytes length = scene().lengths[ids_[i]];
      out.took(rank, first + i, ids_[i]);
      const bool moves = home != FirstHomes::kNobody && home != host && reach.is_up(home) && reach.is_up(host);
      const KeptAt place = home == host ? KeptAt::kMemory : moves ? KeptAt::kPeer : KeptAt::kStorage;
      out.feeders[rank].at(place).add(length);
      if (moves) out.sent[home].add(length);
    }
  }

 private:
  Found find(const Look& look) override {
    const std::uint16_t home = homes_.find_or_keep(look.id, look.host);
    if (home == look.host) return {KeptAt::kMemory};
    return home == FirstHomes::kNobody ? Found{KeptAt::kStorage} : Found{KeptAt::kPeer, home};
  }

  void deal(Epoch epoch, std::uint64_t step) {
    const std::uint64_t length = slices().batch_size(step);
    ids_.resize(length);
    for (std::uint64_t i = 0; i < length; ++i)
      ids_[i] = schedule().sample_at(epoch, slices().source_position(step * setup().global_batch() + i));
    counts_.clear();
    host_counts_.assign(setup().hosts, 0);
    for (std::uint32_t rank = 0; rank < setup().job_world(); ++rank) {
      counts_.push_back(static_cast<std::uint32_t>(slices().share(step, rank).count));
      host_counts_[rank / ranks_per_host()] += counts_.back();
    }
    dealing_.units.resize(length);
    const auto nobody = static_cast<std::uint16_t>(setup().hosts);
    for (std::uint64_t i = 0; i < length; ++i) {
      const std::uint16_t home = homes_.home(ids_[i]);
      dealing_.units.homes[i] = home == FirstHomes::kNobody ? nobody : home;
      dealing_.units.own[i] = dealing_.units.away[i] = 1;
    }
    dealing_.to_hosts(host_counts_);
    dealing_.to_learners(counts_, first_ranks_);
  }

  FirstHomes homes_;
  UnitDealing dealing_;
  std::vector<SampleId> ids_;
  std::vector<std::uint32_t> counts_;
  std::vector<std::uint32_t> host_counts_;
  std::vector<std::uint32_t> first_ranks_;
};

}  // namespace

std::unique_ptr<LoadingSystem> make_locality(const SystemScene& scene) {
  return std::make_unique<Locality>(scene);
}

}  // namespace foreload
