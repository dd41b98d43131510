// Standby: the workers of a process that was asked to have none. They begin when nobody in its host prepares for its
// learner: nobody came, whoever did it is dead or stopped, or has not the memory for its samples. They stay then. One
// thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "host/member.h"
#include "host/workshop.h"
#include "pipeline/ring.h"
#include "policy/standstill.h"

namespace foreload {

class Standby {
 public:
  Standby(std::shared_ptr<Member> member, std::shared_ptr<Workshop> workshop, std::string host)
      : member_(std::move(member)), workshop_(std::move(workshop)), host_(std::move(host)) {}

  // To be called at next_look(), or earlier, which does nothing. A text is a warning for people.
  std::optional<std::string> look(const Ring& ring, Time now);
  Time next_look() const { return next_look_; }
  bool has_begun() const { return has_begun_; }

 private:
  PrepLook see(const Ring& ring, Time now) const;
  std::string warning(const Status& employed, bool staffed) const;

  std::shared_ptr<Member> member_;
  std::shared_ptr<Workshop> workshop_;
  std::string host_;
  Standstill standstill_;
  Time next_look_{};
  bool has_begun_ = false;
  bool has_warned_ = false;
};

}  // namespace foreload
