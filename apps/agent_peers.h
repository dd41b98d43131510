// An agent's part in a job over several hosts: it meets the others, serves them, and fetches from them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "host/member.h"

namespace foreload {

struct AgentPeersOptions {
  std::string peers{};                      // --peers; "auto": as the launcher says
  std::string listen{};                     // empty: where the others expect it
  std::optional<std::uint32_t> host{};      // its place among them
  std::optional<std::uint32_t> learners{};  // of this host
  std::string credentials{};                // folder; empty: this machine only
  std::string disk{};                       // folder of the disk caches of this host's ranks; empty: they have none
  Bytes disk_bytes = 0;                     // that each of them may take; 0: a part of its file system
};

class AgentPeers {
 public:
  virtual ~AgentPeers() = default;
  virtual std::string address() const = 0;  // where others reach it
  // What the user has to be told since the last call.
  virtual std::vector<std::string> take_news() = 0;
  virtual std::vector<std::string> take_warnings() = 0;
  virtual std::optional<Error> failure() const = 0;  // the hosts can not meet
  virtual std::string metrics() const = 0;           // lines for Prometheus
};

// Listens, and meets the others in the background. kMismatch: another agent of this host does that. kInvalid: this
// program has no transport, or the options do not say who the hosts are.
Result<std::unique_ptr<AgentPeers>> open_agent_peers(std::shared_ptr<Member> member, const AgentPeersOptions& options);

// Bytes per second that come from other hosts in samples of that length, measured for about that time.
using MeasurePeers = std::function<Result<double>(Bytes length, Duration time)>;
// `peers` as of AgentPeersOptions; their agents run. kInvalid: as of open_agent_peers, or there is no other host.
Result<MeasurePeers> open_peer_rate(const std::string& peers, const std::string& credentials);

}  // namespace foreload
