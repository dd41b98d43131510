// A framework's own loader over files that each host's kernel caches: TwoListCache. Also the one that reads files in
// their order every epoch, and shuffles in a buffer behind it.
#include "lab/sliced_system.h"
#include "lab/systems.h"
#include "lab/two_list_cache.h"

namespace foreload {
namespace {

class PageCache : public SlicedSystem {
 public:
  PageCache(const SystemScene& scene, bool in_order) : SlicedSystem(scene, order(in_order)), in_order_(in_order) {
    for (HostIndex host = 0; host < setup().hosts; ++host) caches_.emplace_back(setup().samples, setup().cache);
  }
  SystemTraits traits() const override { return {.blocks_workers = true, .exactly_once = !in_order_}; }
  void forget(HostIndex host) override { caches_[host].clear(); }

 private:
  static ScheduleOptions order(bool in_order) {
    ScheduleOptions made;
    made.shuffle = !in_order;
    return made;
  }

  Found find(const Look& look) override {
    return {caches_[look.host].read(look.id, scene().lengths[look.id]) ? KeptAt::kMemory : KeptAt::kStorage};
  }

  std::vector<TwoListCache> caches_;
  bool in_order_;
};

}  // namespace

std::unique_ptr<LoadingSystem> make_page_cache(const SystemScene& scene) {
  return std::make_unique<PageCache>(scene, false);
}

std::unique_ptr<LoadingSystem> make_page_cache_in_order(const SystemScene& scene) {
  return std::make_unique<PageCache>(scene, true);
}

}  // namespace foreload
