#include "base/thread.h"

#include <fmt/core.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.h"

namespace foreload {

namespace {

constexpr int kYieldingNice = 5;
constexpr std::uint64_t kYieldingSlice = 100'000;  // nanoseconds

// The kernel's sched_attr, which the C library does not declare.
struct SchedulingWish {
  std::uint32_t size = sizeof(SchedulingWish);
  std::uint32_t policy = SCHED_BATCH;  // does not take the core of the thread that wakes it
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t slice_ns = 0;
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

constexpr std::size_t kNameLength = 15;  // of the kernel, without the terminating 0

// Blocks signals while it lives. A new thread inherits the mask, so no signal finds it unprotected.
// Faults stay deliverable: they belong to the thread that causes them, and blocking them would only
// take the report away from a crash handler.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t mask;
    sigfillset(&mask);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) sigdelset(&mask, fault);
    FORELOAD_CHECK(pthread_sigmask(SIG_BLOCK, &mask, &before_) == 0, "the mask is valid");
  }
  ~SignalsBlocked() {
    FORELOAD_CHECK(pthread_sigmask(SIG_SETMASK, &before_, nullptr) == 0, "the mask was valid before");
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// What a thread counts against, as far as it is known: "this user may have 7 threads; ".
std::string limits_text() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format("this user may have {} threads in all; ", limit.rlim_cur);
}

}  // namespace

Result<Thread> Thread::start(const std::string& name, std::function<void()> body) {
  const SignalsBlocked blocked;
  try {
    return Thread(std::thread([kernel_name = name.substr(0, kNameLength), body = std::move(body)] {
      FORELOAD_CHECK(pthread_setname_np(pthread_self(), kernel_name.c_str()) == 0, "the name is short enough");
      body();
    }));
  } catch (const std::system_error& error) {
    return Error{Code::kNoMemory,
                 fmt::format("cannot start the thread {}: {}; {}use fewer threads, or raise the limit of processes "
                             "(ulimit -u, or pids.max of the cgroup)",
                             name, error.code().message(), limits_text())};
  }
}

Thread::~Thread() {
  if (thread_.joinable()) thread_.join();
}

// A lower priority alone does not do: since Linux 6.6 the running thread first ends its slice, some milliseconds. Since
// 6.12 a thread may ask for shorter slices; kernels before that ignore the wish.
void yield_to_others() {
  errno = 0;
  const int before = ::getpriority(PRIO_PROCESS, 0);  // the kernel keeps it per thread
  if (errno != 0) return;
  SchedulingWish wish{};
  wish.nice = before + kYieldingNice;
  wish.slice_ns = kYieldingSlice;
  if (::syscall(SYS_sched_setattr, 0, &wish, 0u) != 0) (void)::setpriority(PRIO_PROCESS, 0, wish.nice);
}

void parallel_for(unsigned threads, std::uint64_t count, const std::function<void(std::uint64_t)>& body) {
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> out_of_memory{false};
  const auto work = [&] {
    for (std::uint64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) body(i);
  };
  // The only thing that is thrown here; who calls has the memory of the other threads back when it gets there.
  const auto help = [&] {
    try {
      work();
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
  };
  {
    const std::uint64_t helpers = std::min<std::uint64_t>(std::max(threads, 1u), count);
    std::vector<Thread> started;
    for (std::uint64_t i = 1; i < helpers; ++i) {
      auto thread = Thread::start("foreload-for", help);
      if (!thread.ok()) break;  // slower, but complete
      started.push_back(std::move(*thread));
    }
    work();
  }
  if (out_of_memory) throw std::bad_alloc();
}

}  // namespace foreload
