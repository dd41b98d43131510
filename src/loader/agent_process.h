// The agent of this host, started by the first member that needs one. It is a process of its own, which leaves with the
// last member: gRPC's threads and a trainer that forks do not go together.
#pragma once

#include "foreload/loader.h"
#include "foreload/result.h"

namespace foreload {

// Returns when an agent is there, this one or another. kInvalid: an option is wrong, or there is no program `foreload`;
// kIo: it failed for another reason. The message is the agent's.
Status start_agent(const LoaderOptions& options);

}  // namespace foreload
