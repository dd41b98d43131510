// Where gRPC was not found when this was built.
#include "agent_peers.h"

namespace foreload {

Result<std::unique_ptr<AgentPeers>> open_agent_peers(std::shared_ptr<Member> /*member*/,
                                                     const AgentPeersOptions& /*options*/) {
  return Error{Code::kInvalid,
               "this foreload was built without a transport between hosts: build it where libgrpc++-dev is installed, "
               "or leave out --peers"};
}

}  // namespace foreload
