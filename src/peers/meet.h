// How an agent meets the others: it says hello to whom it can reach, again and again, until every host's card is known.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "foreload/types.h"
#include "peers/meeting.h"
#include "peers/peers_grpc.h"
#include "plan/roster.h"

namespace foreload {

struct MeetOptions {
  std::function<bool()> stop = [] { return false; };                         // looked at a few times per second
  std::function<void(const std::string&)> told = [](const std::string&) {};  // for the user: who is waited for, and why
  Duration pause = std::chrono::milliseconds(300);                           // from one greeting to the next
  Duration patience = std::chrono::seconds(10);  // with a host that refuses: it may be the leftover of an earlier job
  Duration silence = std::chrono::seconds(10);   // between two words for the user; a fifth of it before the first
};

struct Met {
  Roster roster;
  std::vector<std::string> addresses{};  // by host; of this host: empty
};

// Blocks until all are known. `peers` has the addresses that were known before, says what meeting.own() is, and gets
// the addresses that were not; then it can fetch from every host. The server that answers with meeting.greet() runs
// already, and must go on: others may come later. kMismatch: a host refuses this one; kCancelled: stop().
Result<Met> meet(Meeting& meeting, GrpcPeers& peers, const MeetOptions& options);

}  // namespace foreload
