// NoPFS: all uses of the whole run are known, so every host keeps the samples that its learners will use most often
// (the product's count_uses and plan_most_used), reads them when it first needs them, and asks another host that has a
// sample already before it asks storage.
#include <algorithm>
#include <optional>

#include "lab/host_rooms.h"
#include "lab/sliced_system.h"
#include "lab/systems.h"
#include "plan/placement.h"
#include "plan/use_counts.h"

namespace foreload {
namespace {

class NoPfs : public SlicedSystem {
 public:
  explicit NoPfs(const SystemScene& scene) : SlicedSystem(scene), holders_(setup().samples, FirstHomes::kNobody) {
    for (HostIndex host = 0; host < setup().hosts; ++host) {
      kept_.push_back(plan_kept(uses_of(host)));
      here_.emplace_back(setup().samples);
    }
  }
  SystemTraits traits() const override { return {.crosses_epochs = true, .ahead = 8}; }
  void forget(HostIndex host) override {
    here_[host].assign(setup().samples, false);
    for (std::uint16_t& holder : holders_) holder = holder == host ? FirstHomes::kNobody : holder;
  }

 private:
  // Nothing: all that the host ever uses fits.
  std::optional<Placement> plan_kept(const std::vector<std::uint16_t>& uses) const {
    Bytes used = 0;
    for (SampleId id = 0; id < uses.size(); ++id) used += uses[id] > 0 ? scene().footprint(id) : 0;
    if (used <= setup().cache) return std::nullopt;
    return Placement::plan_most_used(uses, setup().cache, setup().seed,
                                     [&](SampleId id) { return scene().footprint(id); });
  }

  // Of all learners of the host.
  std::vector<std::uint16_t> uses_of(HostIndex host) const {
    std::vector<std::uint16_t> sum(setup().samples);
    for (std::uint64_t learner = 0; learner < ranks_per_host(); ++learner) {
      const auto rank = static_cast<std::uint32_t>(host * ranks_per_host() + learner);
      const Stream stream(schedule(), slices(), {.rank = rank, .epochs = setup().epochs});
      const std::vector<std::uint16_t> uses = count_uses(stream);
      std::ranges::transform(sum, uses, sum.begin(), std::plus{});
    }
    return sum;
  }

  Found find(const Look& look) override {
    std::vector<bool>& here = here_[look.host];
    if (here[look.id]) return {KeptAt::kMemory};
    std::uint16_t& holder = holders_[look.id];
    const Found found = holder == FirstHomes::kNobody ? Found{KeptAt::kStorage} : Found{KeptAt::kPeer, holder};
    if (!kept_[look.host] || kept_[look.host]->is_home(look.id)) {
      here[look.id] = true;
      holder = static_cast<std::uint16_t>(look.host);
    }
    return found;
  }

  std::vector<std::optional<Placement>> kept_;  // by host
  std::vector<std::vector<bool>> here_;         // of these, what has been read
  std::vector<std::uint16_t> holders_;          // the last one that kept the sample
};

}  // namespace

std::unique_ptr<LoadingSystem> make_nopfs(const SystemScene& scene) {
  return std::make_unique<NoPfs>(scene);
}

}  // namespace foreload
