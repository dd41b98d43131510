// What faults do to a run. A dead host's feeders stop where they are; the others go on to the barrier and wait there.
// When it is back, with an empty memory, it begins with the step that it has not finished: as resuming does, without
// taking a step twice or leaving one out.
#include <algorithm>

#include "lab/cluster_run.h"

namespace foreload {

void ClusterRun::fault(const Fault& fault, bool begins) {
  HostState& host = hosts_[fault.host];
  const double by = begins ? fault.factor : 1 / fault.factor;
  switch (fault.kind) {
    case FaultKind::kSlowHost:
      host.slow *= by;
      return;
    case FaultKind::kSlowLink: {
      host.link_slow *= by;
      const auto link = static_cast<ResourceId>(3 + setup_.hosts + fault.host);
      return flows_.set_capacity(now(), link, setup_.network_rate / host.link_slow);
    }
    case FaultKind::kSlowStorage:
      storage_slow_ *= by;
      return flows_.set_capacity(now(), 0, setup_.storage_rate / storage_slow_);
    case FaultKind::kDeadLink:
      return reach_.set(fault.host, !begins);
    case FaultKind::kDeadHost:
      return begins ? kill(fault.host) : revive(fault.host);
  }
}

void ClusterRun::kill(HostIndex index) {
  HostState& host = hosts_[index];
  if (host.deaths++ > 0) return;
  host.is_dead = true;
  reach_.set(index, false);
  for (std::uint32_t i = 0; i < feeders_.size(); ++i) {
    Feeder& feeder = feeders_[i];
    if (feeder.host != index) continue;
    ++feeder.turn;
    flows_.cancel(now(), std::uint64_t{i} * 2);
    flows_.cancel(now(), std::uint64_t{i} * 2 + 1);
    feeder.storage.steps.clear();
    feeder.peers.steps.clear();
    feeder.pending.clear();
    feeder.asked = feeder.current;
    feeder.is_hungry = false;
  }
}

void ClusterRun::revive(HostIndex index) {
  HostState& host = hosts_[index];
  if (--host.deaths > 0) return;
  host.is_dead = false;
  reach_.set(index, true);
  system_.forget(index);
  host.memory_free = host.disk_free = host.link_free = now();
  // What was planned before it died counted on its memory.
  for (Planned& plan : plans_) {
    for (std::uint32_t i = 0; i < feeders_.size(); ++i) {
      if (feeders_[i].host != index) continue;
      Load& load = plan.loads.feeders[i];
      load.at(KeptAt::kStorage).add(load.at(KeptAt::kMemory));
      load.at(KeptAt::kMemory) = {};
    }
  }
  for (std::uint32_t i = 0; i < feeders_.size(); ++i) {
    Feeder& feeder = feeders_[i];
    if (feeder.host != index) continue;
    feeder.prep_free = now();
    ask(i);
    if (feeder.current == groups_[feeder.group].step && groups_[feeder.group].is_released) {
      feeder.is_hungry = true;
      feeder.hungry_since = now();
      feed(i);
    }
  }
}

}  // namespace foreload
