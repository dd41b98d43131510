// RosterBoard: how the agent of a host tells its members who the job's hosts are. It is posted before the hosts have
// met, with words about who is missing, and complete when they have. Members keep it: it outlives the agent, so that
// the next one finds by which roster they plan. Whoever reads it does not trust its writer.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "foreload/result.h"
#include "foreload/types.h"
#include "host/member.h"
#include "plan/roster.h"

namespace foreload {

// The hosts of a job, as one of them sees it.
struct JobRoster {
  Roster roster;
  HostIndex self = 0;
};

class RosterBoard {
 public:
  // By the agent. kMismatch: another agent of this host has one, and lives. kInvalid: it is for fewer hosts.
  static Result<RosterBoard> post(std::shared_ptr<Member> member, std::size_t hosts);
  // Nothing: there is none.
  static std::optional<RosterBoard> find(Member& member);

  void say(const std::string& text);   // while the hosts have not met: what is waited for
  void fail(const std::string& text);  // they will not
  std::string said() const;
  bool has_failed() const;
  bool has_agent(const Control& control) const;  // that lives
  // They have met. kMismatch: members of this host plan by another roster already.
  Status publish(const JobRoster& job);
  // Nothing: they have not met, or what stands there is no roster.
  std::optional<JobRoster> read() const;

 private:
  struct Header;
  struct Entry;
  explicit RosterBoard(std::shared_ptr<SharedObject> memory) : memory_(std::move(memory)) {}
  static Bytes region_bytes(std::size_t hosts);
  Header& header() const;
  Entry* entries() const;
  std::size_t room() const;  // hosts for which there is memory

  std::shared_ptr<SharedObject> memory_;
};

}  // namespace foreload
