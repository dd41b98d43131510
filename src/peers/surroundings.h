// Surroundings: what an agent sees of the machine that it runs on: its environment, its addresses, and what others are
// called. As functions, so that decisions over them need no machine.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "foreload/result.h"

namespace foreload {

// Addresses are numbers as text, without brackets, ports and scopes.
struct Surroundings {
  std::function<std::optional<std::string>(const std::string& name)> variable{};  // of the environment; empty is none
  std::function<std::vector<std::string>()> addresses{};                          // of this machine
  // A host's addresses; may take seconds. None: nobody knows that name.
  std::function<std::vector<std::string>(const std::string& host)> look_up{};
  // This machine's address in the eyes of that host.
  std::function<Result<std::string>(const std::string& host)> way_to{};
};

Surroundings real_surroundings();

bool is_loopback_address(const std::string& address);  // nobody beyond the machine reaches it

}  // namespace foreload
