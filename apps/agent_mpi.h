// The same part in a job whose agents mpirun started: they read each other's memory through MPI.
#pragma once

#include "agent_peers.h"

namespace foreload {

// Waits for the other agents of the MPI job. kMismatch: another agent of this host talks to them. kInvalid: this
// program has no MPI.
Result<std::unique_ptr<AgentPeers>> open_agent_mpi(std::shared_ptr<Member> member, const AgentPeersOptions& options);

}  // namespace foreload
