// A cache of every host from which the least recently used sample goes: the product's own `--eviction lru`.
#include "lab/host_rooms.h"
#include "lab/sliced_system.h"
#include "lab/systems.h"

namespace foreload {
namespace {

class Lru : public SlicedSystem {
 public:
  explicit Lru(const SystemScene& scene) : SlicedSystem(scene) {
    for (std::uint64_t host = 0; host < setup().hosts; ++host) {
      rooms_.emplace_back(scene, setup().cache);
      policies_.emplace_back(setup().samples);
    }
  }
  SystemTraits traits() const override { return {.blocks_workers = true}; }
  void forget(HostIndex host) override {
    rooms_[host].clear();
    policies_[host] = LruEviction(setup().samples);
  }

 private:
  Found find(const Look& look) override {
    ByteRoom& room = rooms_[look.host];
    policies_[look.host].use(look.id, look.position);
    if (room.has(look.id)) return {KeptAt::kMemory};
    (void)policies_[look.host].admit(look.id, room);
    return {KeptAt::kStorage};
  }

  std::vector<ByteRoom> rooms_;
  std::vector<LruEviction> policies_;
};

}  // namespace

std::unique_ptr<LoadingSystem> make_lru(const SystemScene& scene) {
  return std::make_unique<Lru>(scene);
}

}  // namespace foreload
