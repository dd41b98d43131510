// Where MPI was not found when this was built.
#include "agent_mpi.h"

namespace foreload {

Result<std::unique_ptr<AgentPeers>> open_agent_mpi(std::shared_ptr<Member> /*member*/,
                                                   const AgentPeersOptions& /*options*/) {
  return Error{Code::kInvalid,
               "this foreload was built without MPI: build it where libopenmpi-dev is installed, or take --transport "
               "grpc"};
}

}  // namespace foreload
