// Keeper: holds the caches of a host, so that they outlive the jobs that filled them. Each is let go of when it is
// dropped, because somebody needs its room.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "base/thread.h"
#include "host/member.h"

namespace foreload {

class Keeper {
 public:
  static Result<std::unique_ptr<Keeper>> start(std::shared_ptr<Member> member);
  ~Keeper();

 private:
  explicit Keeper(std::shared_ptr<Member> member) : member_(std::move(member)) {}
  void run();
  void look();

  std::shared_ptr<Member> member_;
  std::map<ObjectId, std::shared_ptr<SharedObject>> kept_;
  std::atomic<bool> stopping_{false};
  std::vector<Thread> threads_;
};

}  // namespace foreload
