// The service thread sleeps until somebody connects or a fifth of a second has passed; then it looks who has died. A
// request is one short frame, so nobody can keep it busy; who does not send one is shown the door.
#include "host/member.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "base/patience.h"
#include "base/text.h"

namespace foreload {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(200);
constexpr Duration kGuestTime = std::chrono::seconds(1);
constexpr std::size_t kMostGuests = 64;
constexpr Duration kMakingTime = std::chrono::seconds(5);  // of an object that somebody else is making
constexpr Duration kAskAgain = std::chrono::milliseconds(10);
constexpr Duration kLettingGo = std::chrono::seconds(2);  // of a cache that was dropped

// What a forked child must close: a listening socket that nobody serves would look like a stopped member when this
// process is gone. The handlers of fork() know no arguments, so this is the one global of the folder.
std::array<std::atomic<int>, 16>& listeners() {
  static std::array<std::atomic<int>, 16> all{};  // descriptor + 1; 0: free
  return all;
}

void close_listeners() {
  for (std::atomic<int>& listener : listeners()) {
    const int file = listener.exchange(0);
    if (file > 0) ::close(file - 1);
  }
}

void close_in_children(int file) {
  static const int registered = ::pthread_atfork(nullptr, nullptr, close_listeners);
  FORELOAD_CHECK(registered == 0, "a handler of fork() needs some bytes of memory");
  for (std::atomic<int>& listener : listeners()) {
    int free = 0;
    if (listener.compare_exchange_strong(free, file + 1)) return;
  }
}

void forget_listener(int file) {
  for (std::atomic<int>& listener : listeners()) {
    int mine = file + 1;
    if (listener.compare_exchange_strong(mine, 0)) return;
  }
}

// The members of this process by the name of their host.
struct Registry {
  Mutex mutex;
  pid_t owner FORELOAD_GUARDED_BY(mutex) = 0;
  std::map<std::string, std::weak_ptr<Member>> members FORELOAD_GUARDED_BY(mutex);
};
Registry& registry() {
  static Registry all;
  return all;
}

}  // namespace

SharedObject::~SharedObject() {
  member_->let_go(id_);
}

// What users of an object have, beside those who only help them.
class Member::Use {
 public:
  Use(Member& member, std::shared_ptr<SharedObject> object) : member_(member), object_(std::move(object)) {}
  ~Use() { member_.end_use(object_->id()); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  SharedObject* object() const { return object_.get(); }

 private:
  Member& member_;  // which the object keeps
  std::shared_ptr<SharedObject> object_;
};

Result<std::shared_ptr<Member>> Member::join(const std::string& host, const JoinOptions& options) {
  FORELOAD_ASSIGN(HostName name, HostName::parse(host));
  MutexLock lock(registry().mutex);
  if (registry().owner != ::getpid()) registry().members.clear();  // the parent's, in a forked child
  registry().owner = ::getpid();
  std::weak_ptr<Member>& known = registry().members[name.text()];
  if (auto member = known.lock()) {
    if (options.budget != 0 && options.budget != member->control_.budget()) {
      return Error{Code::kMismatch,
                   fmt::format("this process is a member of host \"{}\" with a memory budget of {} ({} bytes) for all, "
                               "and {} ({} bytes) were asked for: give the same, none at all, or name another host",
                               host, format_bytes(member->control_.budget()), member->control_.budget(),
                               format_bytes(options.budget), options.budget)};
    }
    return member;
  }
  Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return errno_error("no event descriptor can be had", errno);
  FORELOAD_ASSIGN(Joined joined, join_host(name, options));
  std::shared_ptr<Member> member(new Member(std::move(joined), std::move(name), std::move(wake)));
  Member* serving = member.get();
  FORELOAD_ASSIGN(Thread thread, Thread::start("fl-host", [serving] { serving->serve(); }));
  member->threads_.push_back(std::move(thread));
  known = member;
  return member;
}

Member::Member(Joined joined, HostName name, Descriptor wake)
    : control_(std::move(joined.control)),
      name_(std::move(name)),
      listener_(std::move(joined.listener)),
      wake_(std::move(wake)),
      owner_(::getpid()),
      created_(joined.created) {
  close_in_children(listener_.get());
}

Member::~Member() {
  if (::getpid() != owner_) {
    for (Thread& thread : threads_) (void)new Thread(std::move(thread));  // it is the parent's
    (void)new Descriptor(std::move(listener_));  // closed by fork(); the number may be another file's by now
    return;
  }
  stopping_ = true;
  FORELOAD_CHECK(::eventfd_write(wake_.get(), 1) == 0, "an event descriptor takes one more");
  threads_.clear();
  forget_listener(listener_.get());
  control_.leave();
}

Result<bool> Member::share(ObjectId object, bool use, std::shared_ptr<SharedObject>& kept) {
  const auto found = held_.find(object);
  if (found != held_.end()) kept = found->second.object.lock();
  if (!kept) return false;
  if (!use) return true;
  FORELOAD_TRY(control_.hold(object, true));
  ++found->second.uses;
  auto user = std::make_shared<Use>(*this, std::move(kept));
  kept = std::shared_ptr<SharedObject>(user, user->object());
  return true;
}

std::shared_ptr<SharedObject> Member::keep(ObjectId object, SharedMemory memory, bool use) {
  const int file = memory.file();
  auto kept = std::make_shared<SharedObject>(shared_from_this(), object, std::move(memory));
  held_[object] = {.object = kept, .file = file, .uses = use ? 1u : 0u};
  control_.announce();  // who asked for it before may ask again
  if (!use) return kept;
  auto user = std::make_shared<Use>(*this, std::move(kept));
  return std::shared_ptr<SharedObject>(user, user->object());
}

// The control block says of an object what is true here: used, only held, or not held. When its lock is not to be had,
// the next look says it.
void Member::tell_control(ObjectId object) {
  const auto found = held_.find(object);
  const Status told = found == held_.end() ? control_.withdraw(object) : control_.hold(object, found->second.uses > 0);
  if (told.ok() || told.error().code == Code::kNotFound) {
    untold_.erase(object);
  } else {
    untold_.insert(object);
  }
}

void Member::end_use(ObjectId object) {
  if (::getpid() != owner_) return;
  MutexLock lock(mutex_);
  const auto found = held_.find(object);
  if (found != held_.end() && --found->second.uses == 0) tell_control(object);
}

void Member::let_go(ObjectId object) {
  if (::getpid() != owner_) return;
  MutexLock lock(mutex_);
  const auto found = held_.find(object);
  if (found == held_.end() || !found->second.object.expired()) return;  // it is here again
  held_.erase(found);
  tell_control(object);
}

Result<std::shared_ptr<SharedObject>> Member::open(const ObjectNeeds& needs) {
  Patience patience(kMakingTime, now());
  for (;;) {
    auto answer = control_.find_or_add(needs.key, needs.bytes, needs.reserve);
    if (!answer.ok() && answer.error().code == Code::kNoMemory && make_room()) continue;
    FORELOAD_ASSIGN(const Control::Found found, std::move(answer));
    if (found.is_new) return make(found.object.id, needs);
    if (found.object.bytes != needs.bytes && !needs.any_size) {
      return Error{Code::kMismatch, fmt::format("the host has {} bytes where this process would make {}",
                                                found.object.bytes, needs.bytes)};
    }
    auto attached = attach(found.object, true);
    // Its maker may have died before it was done; then the key is free again after the next look.
    if (attached.ok() || patience.is_over(now())) return attached;
    tend();
    wait_readable({}, now() + kAskAgain);
  }
}

Result<std::shared_ptr<SharedObject>> Member::make(ObjectId object, const ObjectNeeds& needs) {
  auto memory = SharedMemory::create(needs.bytes, "members of a host");
  Status filled = memory.ok() ? Status() : Status(memory.error());
  if (filled.ok() && needs.fill) filled = needs.fill(*memory);
  MutexLock lock(mutex_);
  if (filled.ok()) return keep(object, std::move(*memory), true);
  tell_control(object);
  return filled.error();
}

Result<std::shared_ptr<SharedObject>> Member::fetch(ObjectId object) {
  const auto found = control_.object(object);
  if (!found || found->dropped) return Error{Code::kNotFound, "the shared memory was let go of meanwhile"};
  return attach(*found, false);
}

Result<std::shared_ptr<SharedObject>> Member::attach(const ObjectInfo& object, bool use) {
  std::shared_ptr<SharedObject> kept;
  {
    MutexLock lock(mutex_);
    FORELOAD_ASSIGN(const bool here, share(object.id, use, kept));
    if (here) return kept;
  }
  auto file = ask_holders(name_, object, id().index);
  if (!file) return silent(object);
  FORELOAD_ASSIGN(SharedMemory memory, SharedMemory::adopt(std::move(*file), object.bytes, "members of a host"));
  MutexLock lock(mutex_);
  FORELOAD_ASSIGN(const bool here, share(object.id, use, kept));  // another thread was quicker
  if (here) return kept;
  FORELOAD_TRY(control_.hold(object.id, use));
  return keep(object.id, std::move(memory), use);
}

Error Member::silent(const ObjectInfo& object) const {
  std::string who;
  for (const MemberInfo& member : control_.members()) {
    if ((object.holders >> member.id.index & 1) != 0)
      who += fmt::format("{}{}", who.empty() ? "" : ", ", member.process);
  }
  if (who.empty()) {
    return {Code::kIo, fmt::format("whoever had memory of host \"{}\" has just ended: try again", name_.text())};
  }
  return {Code::kIo,
          fmt::format("memory of host \"{}\" is held by {} {} alone, and {} not answer: continue (SIGCONT) or "
                      "end {}, or name another host",
                      name_.text(), who.find(',') == std::string::npos ? "process" : "processes", who,
                      who.find(',') == std::string::npos ? "it does" : "they do",
                      who.find(',') == std::string::npos ? "it" : "them")};
}

// Drops the cache that nobody has used for the longest time, and waits until those who kept it have let go. False: all
// are in use, or are not let go of.
bool Member::make_room() {
  std::optional<ObjectInfo> oldest;
  for (const ObjectInfo& object : control_.objects()) {
    if (object.key.kind != ObjectKey::Kind::kArena || object.dropped || object.users != 0) continue;
    if (!oldest || object.last_used < oldest->last_used) oldest = object;
  }
  if (!oldest || !control_.drop(oldest->id).ok()) return false;
  const Time give_up = now() + kLettingGo;
  while (control_.object(oldest->id) && now() < give_up) {
    control_.announce();
    wait_readable({}, now() + kAskAgain);
    (void)control_.collect().ok();
  }
  return !control_.object(oldest->id);
}

Status Member::reserve_more(Bytes bytes) {
  for (;;) {
    {
      MutexLock lock(mutex_);
      const Status reserved = control_.reserve(reserved_ + bytes);
      if (reserved.ok()) reserved_ += bytes;
      if (reserved.ok() || reserved.error().code != Code::kNoMemory) return reserved;
    }
    if (!make_room()) {
      MutexLock lock(mutex_);
      return control_.reserve(reserved_ + bytes);
    }
  }
}

Status Member::reserve_less(Bytes bytes) {
  MutexLock lock(mutex_);
  reserved_ -= bytes;
  return control_.reserve(reserved_);
}

void Member::serve() {
  std::vector<Guest> guests;
  Time look = now();
  while (!stopping_) {
    std::vector<int> sockets{wake_.get(), listener_.get()};
    for (const Guest& guest : guests) sockets.push_back(guest.socket.get());
    wait_readable(sockets, look);
    while (guests.size() < kMostGuests) {
      auto guest = accept_local(listener_.get());
      if (!guest) break;
      guests.push_back({std::move(*guest), now()});
    }
    const Time current = now();
    std::erase_if(guests, [&](const Guest& guest) { return answer(guest) || current - guest.since > kGuestTime; });
    if (current < look) continue;
    tend();
    look = now() + kTick;
  }
}

// True: it is done with.
bool Member::answer(const Guest& guest) {
  const int socket = guest.socket.get();
  Frame frame;
  const Received received = receive_frame(socket, frame);
  if (received == Received::kNothing) return false;
  const auto peer = peer_of(socket);
  const auto reply_with = [&](HostReply::Kind kind, std::span<const int> files = {}) {
    (void)send_frame(socket, encode(HostReply{.kind = kind, .budget = control_.budget()}), files);
    return true;
  };
  const auto request = received == Received::kFrame ? parse_request(frame.bytes) : std::nullopt;
  if (!request) return true;
  if (!peer || peer->user != ::geteuid()) return reply_with(HostReply::Kind::kNotAllowed);
  if (request->protocol != kHostProtocol) return reply_with(HostReply::Kind::kProtocol);
  if (request->kind == HostRequest::Kind::kFetch) {
    // Nothing of the object is held on to: this thread must not be the last that has it. Its file is open while it is
    // on the list.
    MutexLock lock(mutex_);
    const auto found = held_.find(request->object);
    if (found == held_.end()) return reply_with(HostReply::Kind::kNotHere);
    return reply_with(HostReply::Kind::kObject, std::array{found->second.file});
  }
  const bool joins = request->kind == HostRequest::Kind::kJoin;
  if (joins && request->budget != 0 && request->budget != control_.budget())
    return reply_with(HostReply::Kind::kBudget);
  return reply_with(HostReply::Kind::kWelcome, std::array{control_.memory().file()});
}

void Member::tend() {
  for (const MemberId member : control_.dead()) control_.clear(member);
  {
    MutexLock lock(mutex_);
    const std::set<ObjectId> untold = untold_;
    for (const ObjectId object : untold) tell_control(object);
  }
  const std::vector<ObjectInfo> objects = control_.objects();
  const bool unheld = std::any_of(objects.begin(), objects.end(), [](const ObjectInfo& o) { return o.holders == 0; });
  if (unheld) (void)control_.collect().ok();  // otherwise at the next look
}

}  // namespace foreload
