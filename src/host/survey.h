// Survey: how a host is, for people and for metrics. An observer looks from outside: it does not join, and changes
// nothing. A member looks through what it has: see survey_host(Member&).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/control.h"
#include "host/joining.h"
#include "host/member.h"
#include "pipeline/ring.h"

namespace foreload {

struct StreamSurvey {
  ObjectId id = 0;
  std::uint32_t process = 0;  // of the learner
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  unsigned slots = 0;
  unsigned published = 0;    // batches that wait for it
  std::uint32_t fed_by = 0;  // the process of another job, whose batches it takes; 0: its own
  LearnerPace pace{};
  LearnerReport report{};
  struct Helper {
    unsigned place = 0;  // in the host; processes of several containers may have the same number
    std::uint32_t process = 0;
    std::uint64_t samples = 0;
  };
  std::vector<Helper> prepared_by{};
  Bytes bytes = 0;
};

struct ArenaSurvey {
  ObjectId id = 0;
  Bytes bytes = 0;
  Bytes reserved = 0;
  unsigned users = 0;
  unsigned holders = 0;
};

struct HostSurvey {
  std::string name;
  Bytes budget = 0;
  unsigned cores = 0;
  unsigned cores_in_use = 0;
  std::vector<MemberInfo> members;  // that live
  std::vector<ArenaSurvey> arenas;
  std::vector<StreamSurvey> streams;  // that a living learner reads, and whose memory can be had
  // What is taken of the budget, also by streams that are not listed.
  struct Memory {
    Bytes arenas = 0;
    Bytes streams = 0;
    Bytes members = 0;  // beside both
  };
  Memory memory{};
};

// Memory of an object while it is looked at; null: nobody that has it answers.
using ObjectMemory = std::function<std::shared_ptr<const SharedMemory>(const ObjectInfo&)>;
// Nothing: no member lives. Nothing of `memory` is kept: what is held for a look that may never come would take of the
// budget.
std::optional<HostSurvey> survey_host(const std::string& name, const Control& control, const ObjectMemory& memory);
// By a member. An Observer in the same process would open the control block once more, and closing that would give up
// the lock by which this process is alive.
std::optional<HostSurvey> survey_host(Member& member);

// REQUIRES: this process is no member of the host.
class Observer {
 public:
  // Nothing: there is no such host.
  static Result<std::optional<Observer>> open(const std::string& host);

  // Nothing: the host has ended.
  std::optional<HostSurvey> look() const;

 private:
  Observer(HostName name, Control control) : name_(std::move(name)), control_(std::move(control)) {}

  HostName name_;
  Control control_;
};

}  // namespace foreload
