// Where gRPC was not found when this was built, or foreload-agent does not lie beside foreload.
#include "agent_peers.h"

namespace foreload {

namespace {

Error no_transport() {
  return {Code::kInvalid,
          "this foreload has no transport between hosts: build it where libgrpc++-dev is installed, and install "
          "foreload-agent beside it; or leave out --peers"};
}

}  // namespace

Result<std::unique_ptr<AgentPeers>> open_agent_peers(std::shared_ptr<Member> /*member*/,
                                                     const AgentPeersOptions& /*options*/) {
  return no_transport();
}

Result<MeasurePeers> open_peer_rate(const std::string& /*peers*/, const std::string& /*credentials*/) {
  return no_transport();
}

}  // namespace foreload
