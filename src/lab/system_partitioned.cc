// Partitioned caching (CoorDL): a sample stays with the host that read it first; the others get it from there.
#include "lab/host_rooms.h"
#include "lab/sliced_system.h"
#include "lab/systems.h"

namespace foreload {
namespace {

class Partitioned : public SlicedSystem {
 public:
  explicit Partitioned(const SystemScene& scene) : SlicedSystem(scene), homes_(scene) {}
  SystemTraits traits() const override { return {}; }
  void forget(HostIndex host) override { homes_.forget(host); }

 private:
  Found find(const Look& look) override {
    const std::uint16_t home = homes_.find_or_keep(look.id, look.host);
    if (home == FirstHomes::kNobody) return {KeptAt::kStorage};
    return home == look.host ? Found{KeptAt::kMemory} : Found{KeptAt::kPeer, home};
  }

  FirstHomes homes_;
};

}  // namespace

std::unique_ptr<LoadingSystem> make_partitioned(const SystemScene& scene) {
  return std::make_unique<Partitioned>(scene);
}

}  // namespace foreload
