// A framework's own loader over storage that nothing caches.
#include "lab/sliced_system.h"
#include "lab/systems.h"

namespace foreload {
namespace {

class Naive : public SlicedSystem {
 public:
  explicit Naive(const SystemScene& scene) : SlicedSystem(scene) {}
  SystemTraits traits() const override { return {.blocks_workers = true}; }

 private:
  Found find(const Look&) override { return {KeptAt::kStorage}; }
};

}  // namespace

std::unique_ptr<LoadingSystem> make_naive(const SystemScene& scene) {
  return std::make_unique<Naive>(scene);
}

}  // namespace foreload
