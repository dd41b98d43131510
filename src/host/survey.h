// Survey: how a host is, for people and for metrics. Looking does not join and changes nothing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/control.h"
#include "host/joining.h"
#include "host/stream_card.h"
#include "pipeline/ring.h"

namespace foreload {

struct StreamSurvey {
  ObjectId id = 0;
  std::uint32_t process = 0;  // of the learner
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  unsigned slots = 0;
  unsigned published = 0;  // batches that wait for it
  LearnerPace pace{};
  LearnerReport report{};
  struct Helper {
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
  std::vector<MemberInfo> members;
  std::vector<ArenaSurvey> arenas;
  std::vector<StreamSurvey> streams;
};

class Observer {
 public:
  // Nothing: there is no such host.
  static Result<std::optional<Observer>> open(const std::string& host);

  // Nothing: the host has ended.
  std::optional<HostSurvey> look();

 private:
  Observer(HostName name, Control control) : name_(std::move(name)), control_(std::move(control)) {}
  struct Watched {
    StreamCard card;
    std::shared_ptr<Ring> ring;
  };
  const Watched* watch(const ObjectInfo& object);

  HostName name_;
  Control control_;
  std::map<ObjectId, std::optional<Watched>> watched_;  // nothing: it can not be read
};

}  // namespace foreload
