// Joining: how a process becomes a member of a host, or makes the host when there is none. Never are there two hosts of
// one name, whoever dies or comes at the same time; docs/design/host.md has the argument.
#pragma once

#include <functional>
#include <string>

#include "base/files.h"
#include "foreload/result.h"
#include "host/control.h"
#include "host/name.h"

namespace foreload {

struct JoinOptions {
  Bytes budget = 0;                               // of the whole host; 0: whatever it has
  Bytes own_budget = 0;                           // of a host that is made here, when `budget` is 0
  unsigned cores = 0;                             // that workers of a host made here may use; 0: this process's
  Duration patience = std::chrono::seconds(10);   // with members that do not answer
  std::function<void(const char* step)> at_step;  // for tests: called between any two steps that others can see
};

struct Joined {
  Control control;      // entered
  Descriptor listener;  // at the member's index
  bool created = false;
};

// Errors: kMismatch names both budgets or protocol versions; kInvalid: no place is free; kIo: somebody holds a place
// and does not answer.
Result<Joined> join_host(const HostName& name, const JoinOptions& options);

// Only to look: nothing when there is no such host. kIo: its members do not answer.
Result<std::optional<Control>> watch_host(const HostName& name, Duration patience);

// The memory file of an object, from whoever has it; nothing: nobody that has it answers. `index`: of the asking
// member.
std::optional<Descriptor> ask_holders(const HostName& name, const ObjectInfo& object, unsigned index);

}  // namespace foreload
