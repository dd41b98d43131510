// Fork, spawn and exit while a loader is alive (R18).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "base/clock.h"
#include "loader/ledger.h"

namespace foreload {
namespace {

// Of what is repeated at other moments: all of it with FORELOAD_SOAK=1, a tenth otherwise.
int rounds() {
  return std::getenv("FORELOAD_SOAK") != nullptr ? 50 : 5;
}

TEST(LoaderProcessTest, ExitWithoutCloseIsClean) {
  const Ledger ledger(100);
  for (int round = 0; round < rounds(); ++round) {
    const pid_t child = fork();
    if (child == 0) {
      auto* forgotten = new Loader(open(ledger.options()));
      for (int n = 0; n < round; ++n) (void)forgotten->next().ok();
      std::exit(33);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 33) << status;
  }
}

TEST(LoaderProcessTest, AForkedChildGetsAnErrorInsteadOfAHang) {
  const Ledger ledger(64);
  Loader loader = open(ledger.options());
  for (int round = 0; round < rounds(); ++round) {
    ASSERT_TRUE(loader.next().ok());
    const pid_t child = fork();
    if (child == 0) {
      auto batch = loader.next();
      const bool refused = !batch.ok() && batch.error().code == Code::kCancelled;
      (void)loader.stats();
      { const Loader gone = std::move(loader); }
      _exit(refused ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_TRUE(loader.next().ok()) << "the parent goes on";
}

// Descriptors that a program started from here would inherit.
std::set<int> inheritable() {
  std::set<int> found;
  for (int fd = 0; fd < 1024; ++fd) {
    const int flags = fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) found.insert(fd);
  }
  return found;
}

// This program again, with the one test below and a note that it is the child.
pid_t spawn_self() {
  char program[] = "/proc/self/exe";
  char filter[] = "--gtest_filter=LoaderProcessTest.ASpawnedChildLoadsOnItsOwnAndInheritsNothing";
  char note[] = "FORELOAD_SPAWNED=1";
  char* arguments[] = {program, filter, nullptr};
  char* environment[] = {note, nullptr};
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, program, nullptr, nullptr, arguments, environment), 0);
  return child;
}

TEST(LoaderProcessTest, ASpawnedChildLoadsOnItsOwnAndInheritsNothing) {
  constexpr int kDone = 17;
  const Ledger ledger(64);
  const std::set<int> before = inheritable();
  Loader loader = open(ledger.options());
  if (std::getenv("FORELOAD_SPAWNED") != nullptr) {
    Seen seen;
    std::exit(read_epoch(loader, seen) && seen.size() == 64 && !testing::Test::HasFailure() ? kDone : 1);
  }
  for (int round = 0; round < rounds(); ++round) {
    ASSERT_TRUE(loader.next().ok());
    EXPECT_EQ(inheritable(), before);
    const Time start = now();
    const pid_t child = spawn_self();
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kDone) << status;
    EXPECT_LT(now() - start, std::chrono::seconds(5));
  }
  EXPECT_TRUE(loader.next().ok()) << "the parent goes on";
}

}  // namespace
}  // namespace foreload
