// Faults of a simulated run: what goes wrong when, and until when. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foreload/result.h"
#include "lab/cluster.h"
#include "plan/roster.h"

namespace foreload {

enum class FaultKind {
  kSlowHost,     // compute and prep take `factor` times as long
  kSlowLink,     // its link has 1 / factor of its rate
  kSlowStorage,  // shared storage has 1 / factor of its rate
  kDeadLink,     // the host reaches storage, but no peer reaches it, and it reaches none
  kDeadHost,     // gone with all that was in its memory; when it is back the job goes on where it was
};
const char* fault_name(FaultKind kind);  // "slow-host", …

struct Fault {
  FaultKind kind = FaultKind::kSlowHost;
  double at = 0;     // seconds
  double until = 0;  // seconds
  HostIndex host = 0;
  double factor = 4;
};

// "dead-host:3@10s-25s", "slow-link:0@5s-8s*4", "slow-storage@5s-8s*10". kInvalid says what is wrong with it.
Result<Fault> parse_fault(std::string_view text, const ClusterSetup& setup);

// `count` of them within the first `seconds`, of all kinds, chosen by the seed.
std::vector<Fault> random_faults(const ClusterSetup& setup, std::uint64_t count, double seconds);

}  // namespace foreload
