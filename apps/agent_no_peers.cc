// Where gRPC was not found when this was built, or foreload-agent does not lie beside foreload.
#include "agent_peers.h"

namespace foreload {

Result<std::unique_ptr<AgentPeers>> open_agent_peers(std::shared_ptr<Member> /*member*/,
                                                     const AgentPeersOptions& /*options*/) {
  return Error{Code::kInvalid,
               "this foreload has no transport between hosts: build it where libgrpc++-dev is installed, and install "
               "foreload-agent beside it; or leave out --peers"};
}

}  // namespace foreload
