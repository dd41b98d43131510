// Places: where the hosts of a job are, and which of them this one is: from what was written, or from the launcher.
// Pure, but for what the surroundings do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "peers/surroundings.h"
#include "plan/roster.h"

namespace foreload {

inline constexpr std::uint16_t kPeerPort = 7433;  // where agents listen unless something else is written

// What was written; empty: not.
struct PlacesOptions {
  std::string peers{};                      // --peers "a,b:7434,[fd00::1]", in the order of the hosts
  std::optional<HostIndex> host{};          // --host-index
  std::optional<std::uint32_t> learners{};  // --learners
  std::string listen{};                     // --listen "0.0.0.0", "10.0.0.1:7434"
};

struct Places {
  // "host:port" of every host, in order; empty: this one, and those of which only their card will tell.
  std::vector<std::string> addresses{};
  HostIndex self = 0;
  std::string name{};    // where others reach this host; port 0: the one that its server gets
  std::string listen{};  // where its server listens
  std::uint32_t learners = 0;
};

// The hosts are those of --peers; else of torchrun, which tells only where host 0 is (MASTER_ADDR); else of Slurm.
// kInvalid or kIo say what was looked at, and what to write.
Result<Places> find_places(const PlacesOptions& options, const Surroundings& around);

}  // namespace foreload
