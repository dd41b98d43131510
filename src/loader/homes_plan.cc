#include "loader/homes_plan.h"

#include "loader/order.h"
#include "plan/use_counts.h"
#include "policy/eviction.h"
#include "tier/arena.h"

namespace foreload {

Placement plan_homes(const LoaderOptions& options, const Source& source, const SizedPlan& sized, const Stream& stream) {
  const MemoryPlan& memory = sized.memory;
  if (evicts(options.eviction) || memory.home == 0) return {};
  const auto footprint = [&](SampleId id) {
    const Bytes length = source.length(id);
    if (length == 0 || length > sized.longest_sample) return Bytes{0};
    return Arena::footprint(memory.growth ? Arena::grown(length) : length);
  };
  if (options.eviction == Eviction::kStatic) {
    const std::vector<std::uint16_t> own = own_samples(stream.schedule(), stream.assignment(), options.rank);
    if (!own.empty()) return Placement::plan_most_used(own, memory.home, options.seed, footprint);
  }
  // One learner without weights uses all samples equally often.
  const bool equally = options.world == 1 && stream.schedule().options().weights == nullptr;
  if (options.eviction == Eviction::kStatic || equally) {
    return Placement::plan(source.size(), memory.home, options.seed, footprint);
  }
  return Placement::plan_most_used(count_uses(stream), memory.home, options.seed, footprint);
}

}  // namespace foreload
