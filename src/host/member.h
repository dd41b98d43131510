// Member: this process in a host. A thread of it hands out the memory that it has, answers newcomers, and takes back
// what the dead left behind. There is one Member per process and host, however many loaders use it: liveness is a
// record lock, and those belong to the process. Any thread.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "host/joining.h"
#include "host/messages.h"

namespace foreload {

class Member;
class Workshop;

// The memory of an object. Its holder hands it out to other members while this lives.
class SharedObject {
 public:
  SharedObject(std::shared_ptr<Member> member, ObjectId id, SharedMemory memory)
      : member_(std::move(member)), id_(id), memory_(std::move(memory)) {}
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  ObjectId id() const { return id_; }
  const SharedMemory& memory() const { return memory_; }

 private:
  std::shared_ptr<Member> member_;
  ObjectId id_;
  SharedMemory memory_;
};

struct ObjectNeeds {
  ObjectKey key{};
  Bytes bytes = 0;        // of its memory
  bool any_size = false;  // what is there may have another size
  Bytes reserve = 0;      // of the budget, to begin with
  // Fills new memory, before anybody else has it.
  std::function<Status(const SharedMemory&)> fill{};
};

class Member : public std::enable_shared_from_this<Member> {
 public:
  // This process's member of that host, joined now if it was not.
  static Result<std::shared_ptr<Member>> join(const std::string& host, const JoinOptions& options);
  ~Member();  // leaves

  Control& control() { return control_; }
  MemberId id() const { return *control_.self(); }
  const HostName& name() const { return name_; }
  bool created() const { return created_; }  // the host, when it joined

  // The object with this key, to use it: another member's memory, or new memory. When room is needed, caches that
  // nobody uses are dropped, oldest first. kNoMemory: the budget or the machine has not so much. kIo: whoever has it
  // does not answer.
  Result<std::shared_ptr<SharedObject>> open(const ObjectNeeds& needs) FORELOAD_EXCLUDES(mutex_);
  // One that is there, to help those who use it. kNotFound: it has ended.
  Result<std::shared_ptr<SharedObject>> fetch(ObjectId object) FORELOAD_EXCLUDES(mutex_);

  // Of the budget, for this process beside objects. kNoMemory says how much is left.
  Status reserve_more(Bytes bytes) FORELOAD_EXCLUDES(mutex_);
  Status reserve_less(Bytes bytes) FORELOAD_EXCLUDES(mutex_);

 private:
  friend class SharedObject;
  class Use;
  friend class Workshop;  // there is one for all loaders of the process
  struct Guest {
    Descriptor socket;
    Time since{};
  };

  Member(Joined joined, HostName name, Descriptor wake);
  Result<std::shared_ptr<SharedObject>> make(ObjectId object, const ObjectNeeds& needs) FORELOAD_EXCLUDES(mutex_);
  Result<std::shared_ptr<SharedObject>> attach(const ObjectInfo& object, bool use) FORELOAD_EXCLUDES(mutex_);
  // Whether it is here already. `kept` is given up after the lock: it may be the last that has the object.
  Result<bool> share(ObjectId object, bool use, std::shared_ptr<SharedObject>& kept) FORELOAD_REQUIRES(mutex_);
  std::shared_ptr<SharedObject> keep(ObjectId object, SharedMemory memory, bool use) FORELOAD_REQUIRES(mutex_);
  Error silent(const ObjectInfo& object) const;
  void end_use(ObjectId object) FORELOAD_EXCLUDES(mutex_);
  bool make_room();
  void let_go(ObjectId object) FORELOAD_EXCLUDES(mutex_);
  void tell_control(ObjectId object) FORELOAD_REQUIRES(mutex_);

  void serve();
  bool answer(const Guest& guest) FORELOAD_EXCLUDES(mutex_);
  void tend() FORELOAD_EXCLUDES(mutex_);

  Control control_;
  HostName name_;
  Descriptor listener_;
  Descriptor wake_;
  pid_t owner_;
  bool created_;
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  struct Held {
    std::weak_ptr<SharedObject> object;
    int file = -1;
    unsigned uses = 0;
  };
  std::map<ObjectId, Held> held_ FORELOAD_GUARDED_BY(mutex_);
  std::set<ObjectId> untold_ FORELOAD_GUARDED_BY(mutex_);  // whose share in the control block is not what it should be
  Bytes reserved_ FORELOAD_GUARDED_BY(mutex_) = 0;
  std::weak_ptr<Workshop> workshop_ FORELOAD_GUARDED_BY(mutex_);
  std::vector<Thread> threads_;  // one, when it serves
};

}  // namespace foreload
