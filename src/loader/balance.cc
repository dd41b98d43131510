#include "loader/balance.h"

#include <fmt/format.h>

#include "policy/eviction.h"
#include "tier/shared_arena.h"

namespace foreload {

Result<std::shared_ptr<const StepPlans>> balance(const LoaderOptions& options, const Source& source,
                                                 const Schedule& schedule, const SliceAssignment& slices,
                                                 const std::optional<Roster>& roster) {
  if (!roster) return std::shared_ptr<const StepPlans>();
  if (roster->world() != options.world) {
    return Error{Code::kInvalid, fmt::format("the hosts of the job have {} learners together, and the world is {}: "
                                             "give every host the number of ranks that run there",
                                             roster->world(), options.world)};
  }
  if (evicts(options.eviction)) {
    return Error{Code::kInvalid,
                 "eviction belady and lru are for hosts that can not share their caches; these do: leave out eviction"};
  }
  const auto footprint = [&](SampleId id) {
    const Bytes length = source.length(id);
    return length > options.limits.sample_bytes ? 0 : SharedArena::footprint(length);
  };
  HostPlacement homes = HostPlacement::plan(source.size(), options.seed, *roster, footprint);
  BalancedAssignment assignment(schedule, slices, *roster, std::move(homes),
                                [&](SampleId id) { return source.length(id); });
  return std::make_shared<const StepPlans>(std::move(assignment), options.rank);
}

}  // namespace foreload
