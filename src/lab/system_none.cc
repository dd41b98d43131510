// The bound: batches are there whenever somebody wants one.
#include "lab/sliced_system.h"
#include "lab/systems.h"

namespace foreload {
namespace {

class Unlimited : public SlicedSystem {
 public:
  explicit Unlimited(const SystemScene& scene) : SlicedSystem(scene) {}
  SystemTraits traits() const override {
    return {.pools_host = true, .prepares_once = true, .crosses_epochs = true, .loads = false};
  }

 private:
  Found find(const Look&) override { return {KeptAt::kMemory}; }
};

}  // namespace

std::unique_ptr<LoadingSystem> make_unlimited(const SystemScene& scene) {
  return std::make_unique<Unlimited>(scene);
}

}  // namespace foreload
