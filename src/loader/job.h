// The other hosts of a loader's job: the roster on which their agents agreed, and what follows from it: which learner
// takes which samples, and which host keeps which.
#pragma once

#include <memory>
#include <optional>

#include "foreload/loader.h"
#include "host/roster_board.h"
#include "loader/seams.h"
#include "plan/step_plans.h"

namespace foreload {

// Options that do not go together with peers.
Status check_peers(const LoaderOptions& options);

// A job over several hosts, as a learner sees it.
struct JobPlan {
  std::shared_ptr<const StepPlans> plans{};  // null: there is one host
  HostIndex self = 0;
  PeerKey key{};
  std::optional<RosterBoard> board{};  // kept, for the next agent
  bool balanced = false;               // otherwise by slices
  Bytes disk_each = 0;                 // what each learner of this host has on disk for all hosts; 0: nothing

  std::shared_ptr<const StepPlans> assignment() const { return balanced ? plans : nullptr; }
  // Another host that keeps the sample; nothing: none does.
  std::optional<HostIndex> home_elsewhere(SampleId id) const;
  Home home(SampleId id) const { return plans->assignment().placement().home(id); }
  bool is_in_memory_here(SampleId id) const { return home(id) == Home(self, HomeTier::kMemory); }
  bool is_on_disk_here(SampleId id) const { return home(id) == Home(self, HomeTier::kDisk); }
};

// Waits until the hosts have met. Starts an agent where there is none.
Result<JobPlan> plan_job(const LoaderOptions& options, const Source& source, const Schedule& schedule,
                         const SliceAssignment& slices, const Seams& seams);

}  // namespace foreload
