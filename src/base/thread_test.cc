#include "base/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <set>
#include <vector>

#include "base/mutex.h"

namespace foreload {
namespace {

TEST(ThreadTest, HasItsNameCutToWhatTheKernelAllows) {
  std::string name(32, '\0');
  {
    const auto thread =
        Thread::start("foreload-reader-17", [&] { pthread_getname_np(pthread_self(), name.data(), name.size()); });
  }
  EXPECT_STREQ(name.c_str(), "foreload-reader");
}

TEST(ThreadTest, BlocksSignalsAndLeavesTheStartersMaskAlone) {
  sigset_t before;
  sigset_t inside;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  {
    const auto thread = Thread::start("t", [&] { pthread_sigmask(SIG_SETMASK, nullptr, &inside); });
  }
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM}) {
    EXPECT_EQ(sigismember(&inside, signal), 1) << signal;
    EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal)) << signal;
  }
  EXPECT_EQ(sigismember(&inside, SIGSEGV), 0);
}

TEST(ThreadTest, IsJoinedWhenDestroyed) {
  std::atomic<bool> done{false};
  {
    auto first = Thread::start("t", [&] { done = true; });
    const Thread second = std::move(*first);
  }
  EXPECT_TRUE(done);
}

TEST(ThreadTest, ALimitIsAnErrorThatNamesIt) {
  // Root is above the limit, so the child becomes another user, of whom there is nothing else.
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become a user without other processes";
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{1, 1};
    const uid_t user = 200'000 + static_cast<uid_t>(getpid());
    if (setrlimit(RLIMIT_NPROC, &limit) != 0 || setuid(user) != 0) _exit(2);
    const auto thread = Thread::start("t", [] {});
    _exit(!thread.ok() && thread.error().message.find("have 1 thread") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ParallelForTest, RunsEveryIndexOnceForAnyThreadCount) {
  for (const unsigned threads : {0u, 1u, 2u, 7u, 50u}) {
    std::vector<std::atomic<int>> runs(23);
    parallel_for(threads, runs.size(), [&](std::uint64_t i) { ++runs[i]; });
    for (const auto& count : runs) EXPECT_EQ(count, 1);
  }
}

TEST(ParallelForTest, NothingToDoIsFine) {
  parallel_for(4, 0, [](std::uint64_t) { FAIL(); });
}

TEST(ParallelForTest, UsesSeveralThreads) {
  Mutex mutex;
  CondVar arrived;
  std::set<std::thread::id> threads;
  parallel_for(3, 3, [&](std::uint64_t) {
    const MutexLock lock(mutex);
    threads.insert(std::this_thread::get_id());
    arrived.notify_all();
    while (threads.size() < 3) arrived.wait(mutex);  // hangs unless three run at once
  });
  EXPECT_EQ(threads.size(), 3u);
}

}  // namespace
}  // namespace foreload
