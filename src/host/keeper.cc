#include "host/keeper.h"

#include "base/clock.h"

namespace foreload {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(200);

}  // namespace

Result<std::unique_ptr<Keeper>> Keeper::start(std::shared_ptr<Member> member) {
  std::unique_ptr<Keeper> keeper(new Keeper(std::move(member)));
  Keeper* running = keeper.get();
  FORELOAD_ASSIGN(Thread thread, Thread::start("fl-keeper", [running] { running->run(); }));
  keeper->threads_.push_back(std::move(thread));
  return keeper;
}

Keeper::~Keeper() {
  stopping_ = true;
  member_->control().announce();
  threads_.clear();
}

void Keeper::run() {
  while (!stopping_) {
    const std::uint32_t seen = member_->control().version();
    look();
    if (!stopping_) member_->control().wait_for_version(seen, now() + kLook);
  }
}

void Keeper::look() {
  std::map<ObjectId, std::shared_ptr<SharedObject>> still;
  for (const ObjectInfo& object : member_->control().objects()) {
    if (object.key.kind != ObjectKey::Kind::kArena || object.dropped) continue;
    const auto known = kept_.find(object.id);
    if (known != kept_.end()) {
      still.insert(kept_.extract(known));
    } else if (auto fetched = member_->fetch(object.id); fetched.ok()) {
      still[object.id] = std::move(*fetched);
    }
  }
  kept_ = std::move(still);
}

}  // namespace foreload
