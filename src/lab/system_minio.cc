// MinIO (CoorDL): every host keeps what it reads until its cache is full, and never lets anything go. Also its
// coordinated prep, where jobs of a host go over one stream together.
#include "lab/host_rooms.h"
#include "lab/sliced_system.h"
#include "lab/systems.h"

namespace foreload {
namespace {

class MinIo : public SlicedSystem {
 public:
  MinIo(const SystemScene& scene, bool coordinated) : SlicedSystem(scene), coordinated_(coordinated) {
    for (std::uint64_t host = 0; host < setup().hosts; ++host) rooms_.emplace_back(scene, setup().cache);
  }
  SystemTraits traits() const override { return {.pools_host = coordinated_, .prepares_once = coordinated_}; }
  void forget(HostIndex host) override { rooms_[host].clear(); }

 private:
  Found find(const Look& look) override {
    ByteRoom& room = rooms_[look.host];
    if (room.has(look.id)) return {KeptAt::kMemory};
    (void)room.take(look.id);
    return {KeptAt::kStorage};
  }

  std::vector<ByteRoom> rooms_;
  bool coordinated_;
};

}  // namespace

std::unique_ptr<LoadingSystem> make_minio(const SystemScene& scene) {
  return std::make_unique<MinIo>(scene, false);
}

std::unique_ptr<LoadingSystem> make_coordinated(const SystemScene& scene) {
  return std::make_unique<MinIo>(scene, true);
}

}  // namespace foreload
