#include "base/futex.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>

#include "base/clock.h"
#include "base/thread.h"

namespace foreload {
namespace {

using std::chrono::milliseconds;

TEST(FutexTest, ReturnsAtOnceWhenTheWordDiffers) {
  const std::atomic<std::uint32_t> word{1};
  futex_wait(word, 0, kNever);
}

TEST(FutexTest, WaitsUntilTheDeadlineAndNotMuchLonger) {
  const std::atomic<std::uint32_t> word{0};
  const Time start = now();
  while (now() < start + milliseconds(20)) futex_wait(word, 0, start + milliseconds(20));
  EXPECT_LT(now() - start, std::chrono::seconds(5));
}

TEST(FutexTest, ADeadlineInThePastReturnsAtOnce) {
  const std::atomic<std::uint32_t> word{0};
  futex_wait(word, 0, Time(0));
  futex_wait(word, 0, Time(-5));
}

TEST(FutexTest, WakeReachesAWaiter) {
  std::atomic<std::uint32_t> word{0};
  const auto waker = Thread::start("waker", [&] {
    futex_wait(word, 1, now() + milliseconds(5));
    word.store(1);
    futex_wake_one(word);
  });
  while (word.load() == 0) futex_wait(word, 0, kNever);
}

TEST(FutexTest, WakeAllReachesEveryWaiter) {
  std::atomic<std::uint32_t> word{0};
  std::atomic<int> through{0};
  {
    std::vector<Thread> waiters;
    for (int i = 0; i < 4; ++i) {
      auto waiter = Thread::start("waiter", [&] {
        while (word.load() == 0) futex_wait(word, 0, kNever);
        ++through;
      });
      ASSERT_TRUE(waiter.ok());
      waiters.push_back(std::move(*waiter));
    }
    word.store(1);
    futex_wake_all(word);
  }
  EXPECT_EQ(through.load(), 4);
}

TEST(FutexTest, WorksBetweenProcesses) {
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto& word = *new (page) std::atomic<std::uint32_t>(0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Time deadline = now() + std::chrono::seconds(10);
    while (word.load() == 0 && now() < deadline) futex_wait(word, 0, deadline);
    _exit(word.load() == 1 ? 0 : 1);
  }
  word.store(1);
  futex_wake_all(word);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  munmap(page, 4096);
}

}  // namespace
}  // namespace foreload
