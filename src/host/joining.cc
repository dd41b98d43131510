// A newcomer first takes a place, that is, listens at the lowest free index; then it asks all others. Who is a member
// welcomes it. Who is a newcomer too answers "undecided". Only the one at index 0, having found nobody but the
// undecided, makes the host; others that find nobody try to become index 0, or ask again.
//
// Why there are never two hosts: a member is found at its place, because it listened there before it was welcomed, and
// it never moves to a lower one. A newcomer that answers "undecided" to index 0 forgets whoever it was asking, and asks
// nobody but index 0 while that lives: a welcome from a member that is dead by now does not count any more. Somebody
// who holds a place and says nothing may be a member that is stopped: then no host is made.
#include "host/joining.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/clock.h"
#include "base/machine.h"
#include "base/patience.h"
#include "base/text.h"
#include "host/messages.h"

namespace foreload {
namespace {

constexpr Duration kAnswerTime = std::chrono::milliseconds(500);
constexpr Duration kAskAgain = std::chrono::milliseconds(10);

Error silent_member(const HostName& name, pid_t process) {
  return {Code::kIo, fmt::format("process {} holds a place of host \"{}\" and does not answer: continue it (SIGCONT) "
                                 "or end it, or name another host",
                                 process, name.text())};
}

enum class Answer { kNobody, kUndecided, kWelcome, kSilent, kForgotten };

class Newcomer {
 public:
  Newcomer(const HostName& name, const JoinOptions& options)
      : name_(name), options_(options), patience_(options.patience, now()) {}

  Result<Joined> join() {
    FORELOAD_TRY(take_place(0));
    while (!patience_.is_over(now())) {
      step("placed");
      FORELOAD_ASSIGN(const bool found, ask_all());
      if (found) {
        FORELOAD_ASSIGN(const bool entered, enter());
        if (entered) return Joined{std::move(*control_), std::move(listener_), false};
        continue;
      }
      if (index_ == 0 && silent_ == 0) return create();
      FORELOAD_TRY(try_index_0());
      answer_until(now() + kAskAgain);
    }
    return gave_up();
  }

 private:
  // Listens at the first free index from `first` on.
  Status take_place(unsigned first) {
    FORELOAD_ASSIGN(const Descriptor guard, name_.lock_folder());
    for (unsigned index = first; index < kMostMembers; ++index) {
      FORELOAD_ASSIGN(auto listener, listen_local(name_.address(index)));
      if (!listener) continue;
      listener_ = std::move(*listener);
      index_ = index;
      return {};
    }
    return Error{Code::kInvalid,
                 fmt::format("host \"{}\" has {} members, which is the limit: end some, or name another host",
                             name_.text(), kMostMembers)};
  }

  Status try_index_0() {
    if (index_ == 0) return {};
    FORELOAD_ASSIGN(const Descriptor guard, name_.lock_folder());
    FORELOAD_ASSIGN(auto listener, listen_local(name_.address(0)));
    if (!listener) return {};
    listener_ = std::move(*listener);
    index_ = 0;
    promised_ = false;
    step("moved");
    return {};
  }

  // True: somebody welcomed us.
  Result<bool> ask_all() {
    silent_ = 0;
    for (unsigned index = 0; index < kMostMembers; ++index) {
      if (index == index_) continue;
      FORELOAD_ASSIGN(const Answer answer, ask(index));
      if (answer == Answer::kWelcome) return true;
      if (index == 0 && answer == Answer::kNobody) promised_ = false;
      if (promised_) return false;
    }
    return false;
  }

  Result<Answer> ask(unsigned index) {
    auto connected = connect_local(name_.address(index));
    if (!connected.ok()) return silent(0);
    if (!connected->has_value()) return Answer::kNobody;
    const int socket = (*connected)->get();
    const auto peer = peer_of(socket);
    if (!peer || peer->user != ::geteuid()) {
      return Error{Code::kInvalid, fmt::format("place {} of host \"{}\" is held by another user: name another host",
                                               index, name_.text())};
    }
    const auto request = encode({.kind = HostRequest::Kind::kJoin, .index = index_, .budget = options_.budget});
    if (!send_frame(socket, request)) return silent(peer->process);
    step("asked");
    const Time until = now() + kAnswerTime;
    while (now() < until) {
      wait_readable(sockets_with(socket), until);
      answer_others();
      if (promised_ && index != 0) return Answer::kForgotten;
      Frame frame;
      switch (receive_frame(socket, frame, 1)) {
        case Received::kNothing:
          continue;
        case Received::kClosed:  // it may have been too busy: if it is gone, nobody listens the next time
        case Received::kBad:
          return silent(peer->process);
        case Received::kFrame:
          return judge(frame, peer->process);
      }
    }
    return silent(peer->process);
  }

  Answer silent(pid_t process) {
    silent_ = process == 0 ? -1 : process;
    return Answer::kSilent;
  }

  Result<Answer> judge(Frame& frame, pid_t process) {
    const auto reply = parse_reply(frame.bytes);
    if (!reply) return silent(process);
    switch (reply->kind) {
      case HostReply::Kind::kUndecided:
        return Answer::kUndecided;
      case HostReply::Kind::kProtocol:
        return Error{
            Code::kMismatch,
            fmt::format("host \"{}\" (process {}) speaks protocol {}, this program {}: use the same version of "
                        "foreload, or name another host",
                        name_.text(), process, reply->protocol, kHostProtocol)};
      case HostReply::Kind::kBudget:
        return Error{
            Code::kMismatch,
            fmt::format("host \"{}\" has a memory budget of {} ({} bytes) for all its members, and {} ({} bytes) "
                        "were asked for: give the same, none at all, or name another host",
                        name_.text(), format_bytes(reply->budget), reply->budget, format_bytes(options_.budget),
                        options_.budget)};
      case HostReply::Kind::kWelcome:
        break;
      default:
        return silent(process);
    }
    if (frame.files.empty()) return silent(process);
    step("welcomed");
    auto control = Control::adopt(std::move(frame.files.front()));
    if (!control.ok()) {
      return Error{Code::kInvalid,
                   fmt::format("host \"{}\" (process {}): {}", name_.text(), process, control.error().message)};
    }
    control_.emplace(std::move(*control));
    return Answer::kWelcome;
  }

  std::vector<int> sockets_with(int socket) const {
    std::vector<int> sockets{socket, listener_.get()};
    for (const Descriptor& guest : guests_) sockets.push_back(guest.get());
    return sockets;
  }

  // Answers whoever wants to join meanwhile. To index 0 that is a promise: to be with nobody else while it lives.
  void answer_others() {
    while (auto guest = accept_local(listener_.get())) {
      const auto peer = peer_of(guest->get());
      if (peer && peer->user == ::geteuid() && guests_.size() < kMostMembers) guests_.push_back(std::move(*guest));
    }
    std::erase_if(guests_, [&](const Descriptor& guest) {
      Frame frame;
      const Received received = receive_frame(guest.get(), frame);
      if (received == Received::kNothing) return false;
      const auto request = received == Received::kFrame ? parse_request(frame.bytes) : std::nullopt;
      if (!request) return true;
      if (request->kind == HostRequest::Kind::kJoin && request->index == 0 && index_ != 0) promised_ = true;
      (void)send_frame(guest.get(), encode(HostReply{.kind = HostReply::Kind::kUndecided}));
      return true;
    });
  }

  void answer_until(Time until) {
    do {
      answer_others();
      wait_readable(sockets_with(listener_.get()), until);
    } while (now() < until);
  }

  // The place in the control block is that of the socket. False: what its last holder left is not cleared yet, and no
  // higher place is free.
  Result<bool> enter() {
    step("adopted");
    for (;;) {
      if (control_->enter(index_)) break;
      if (!take_place(index_ + 1).ok()) {
        control_.reset();
        return false;
      }
    }
    step("entered");
    return true;
  }

  Result<Joined> create() {
    step("alone");
    FORELOAD_ASSIGN(Control control, Control::create(options_.budget != 0 ? options_.budget : options_.own_budget,
                                                     options_.cores != 0 ? options_.cores : usable_cores()));
    const auto member = control.enter(0);
    if (!member) return Error{Code::kIo, "the control block that was just made is held by another process"};
    step("created");
    return Joined{std::move(control), std::move(listener_), true};
  }

  Error gave_up() const {
    if (silent_ > 0) return silent_member(name_, silent_);
    return {Code::kIo, fmt::format("host \"{}\" could not be joined within {}: its places are held, and nobody answers",
                                   name_.text(), format_duration(options_.patience))};
  }

  void step(const char* name) const {
    if (options_.at_step) options_.at_step(name);
  }

  const HostName& name_;
  const JoinOptions& options_;
  Patience patience_;
  Descriptor listener_;
  unsigned index_ = 0;
  std::vector<Descriptor> guests_;
  std::optional<Control> control_;
  pid_t silent_ = 0;       // somebody who did not answer; -1: unknown
  bool promised_ = false;  // to index 0: to ask nobody else while it lives
};

}  // namespace

Result<Joined> join_host(const HostName& name, const JoinOptions& options) {
  return Newcomer(name, options).join();
}

Result<std::optional<Control>> watch_host(const HostName& name, Duration patience) {
  const Time deadline = now() + patience;
  pid_t silent = 0;
  for (unsigned index = 0; index < kMostMembers; ++index) {
    FORELOAD_ASSIGN(const auto connected, connect_local(name.address(index)));
    if (!connected) continue;
    const auto peer = peer_of(connected->get());
    if (!peer || peer->user != ::geteuid()) continue;
    if (!send_frame(connected->get(), encode({.kind = HostRequest::Kind::kWatch}))) continue;
    wait_readable(std::array{connected->get()}, std::min(deadline, now() + kAnswerTime));
    Frame frame;
    const Received received = receive_frame(connected->get(), frame, 1);
    if (received == Received::kNothing) silent = peer->process;
    if (received != Received::kFrame || frame.files.empty()) continue;
    const auto reply = parse_reply(frame.bytes);
    if (!reply || reply->kind != HostReply::Kind::kWelcome) continue;
    FORELOAD_ASSIGN(Control control, Control::adopt(std::move(frame.files.front())));
    return std::optional<Control>(std::move(control));
  }
  if (silent != 0) return silent_member(name, silent);
  return std::optional<Control>();
}

std::optional<Descriptor> ask_holders(const HostName& name, const ObjectInfo& object, unsigned index) {
  for (unsigned holder = 0; holder < kMostMembers; ++holder) {
    if ((object.holders >> holder & 1) == 0 || holder == index) continue;
    const auto connected = connect_local(name.address(holder));
    if (!connected.ok() || !connected->has_value()) continue;
    const int socket = (*connected)->get();
    const auto peer = peer_of(socket);
    const auto request = encode({.kind = HostRequest::Kind::kFetch, .index = index, .object = object.id});
    if (!peer || peer->user != ::geteuid() || !send_frame(socket, request)) continue;
    wait_readable(std::array{socket}, now() + kAnswerTime);
    Frame frame;
    if (receive_frame(socket, frame, 1) != Received::kFrame || frame.files.empty()) continue;
    const auto reply = parse_reply(frame.bytes);
    if (reply && reply->kind == HostReply::Kind::kObject) return std::move(frame.files.front());
  }
  return std::nullopt;
}

}  // namespace foreload
