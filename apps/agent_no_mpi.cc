// Where MPI was not found when this was built, or foreload-agent does not lie beside foreload.
#include "agent_mpi.h"

namespace foreload {

Result<std::unique_ptr<AgentPeers>> open_agent_mpi(std::shared_ptr<Member> /*member*/,
                                                   const AgentPeersOptions& /*options*/) {
  return Error{
      Code::kInvalid,
      "this foreload has no MPI: build it where libopenmpi-dev is installed, and install foreload-agent beside "
      "it; or take --transport grpc"};
}

}  // namespace foreload
