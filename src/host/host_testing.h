// For tests: real processes that do something with a host, tell how it went, and end when they are told.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/local_socket.h"
#include "host/member.h"

// Where one process orders the memory of another, which TSan does not see.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FORELOAD_SKIP_UNDER_TSAN() GTEST_SKIP() << "TSan sees one process only"
#endif
#endif
#if !defined(FORELOAD_SKIP_UNDER_TSAN)
#define FORELOAD_SKIP_UNDER_TSAN() static_cast<void>(0)
#endif

namespace foreload {

inline int soak(int amount, int at_least = 5) {
  return std::getenv("FORELOAD_SOAK") != nullptr ? amount : std::max(amount / 10, at_least);
}

// A name that no other test, and no other run, has.
inline std::string fresh_host() {
  static int count = 0;
  return "test-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
}

// What the control block is, whoever has it: equal for members of the same host.
inline ino_t identity(const Control& control) {
  struct stat found {};
  EXPECT_EQ(::fstat(control.memory().file(), &found), 0);
  return found.st_ino;
}

struct Told {
  int what = 0;  // the body's own
  ino_t host = 0;
  bool created = false;
  std::uint64_t numbers[3] = {};  // the body's own, too
};

// A child process. `body` runs in it and tells things; then it waits for the end of the test, or its own.
class HostChild {
 public:
  using Tell = std::function<void(const Told&)>;
  // `body` gets a descriptor that becomes readable when the child is to end.
  explicit HostChild(const std::function<void(const Tell&, int until)>& body) {
    int out[2];
    int in[2];
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(in, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(out[0]);
      ::close(in[1]);
      const int write_to = out[1];
      body([write_to](const Told& told) { (void)!::write(write_to, &told, sizeof(told)); }, in[0]);
      ::_exit(0);
    }
    ::close(out[1]);
    ::close(in[0]);
    from_ = Descriptor(out[0]);
    to_ = Descriptor(in[1]);
  }
  HostChild(HostChild&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), from_(std::move(other.from_)), to_(std::move(other.to_)) {}
  ~HostChild() { kill(); }

  pid_t pid() const { return pid_; }
  // Nothing: it ended, or took longer.
  std::optional<Told> next(Duration patience = std::chrono::seconds(20)) {
    wait_readable(std::array{from_.get()}, now() + patience);
    ::fcntl(from_.get(), F_SETFL, O_NONBLOCK);
    Told told;
    return ::read(from_.get(), &told, sizeof(told)) == sizeof(told) ? std::optional(told) : std::nullopt;
  }
  void signal(int number) const { ::kill(pid_, number); }
  void stop() const {  // and it is stopped
    int status = 0;
    ::kill(pid_, SIGSTOP);
    if (::waitpid(pid_, &status, WUNTRACED) != pid_ || !WIFSTOPPED(status)) ADD_FAILURE() << "it does not stop";
  }
  void go() const { (void)!::write(to_.get(), "g", 1); }  // ends its wait_for_end(), once
  void finish() { to_ = Descriptor(); }                   // it may end by itself
  int wait() {                                            // its status
    int status = -1;
    if (pid_ > 0 && ::waitpid(pid_, &status, 0) != pid_) ADD_FAILURE() << "no such child";
    pid_ = -1;
    return status;
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    (void)wait();
  }

 private:
  pid_t pid_ = -1;
  Descriptor from_;
  Descriptor to_;
};

inline void wait_for_end(int until) {
  char end = 0;
  (void)!::read(until, &end, 1);
}

// Joins, says so, and stays.
inline HostChild joiner(const std::string& host, JoinOptions options = {.own_budget = 1_GiB}) {
  return HostChild([=](const HostChild::Tell& tell, int until) {
    auto member = Member::join(host, options);
    if (!member.ok()) {
      tell({.what = -1 - static_cast<int>(member.error().code)});
      return;
    }
    tell({.host = identity((*member)->control()), .created = (*member)->created()});
    wait_for_end(until);
  });
}

}  // namespace foreload
