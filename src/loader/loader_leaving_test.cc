// How members of a host go, or stand still: without closing, into another program, by a signal, or stopped for a
// minute. The others read on what they would have read, and nothing of who is gone is left.
#include <cstdlib>

#include "host/keeper.h"
#include "host/workshop.h"
#include "loader/host_learner.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSamples = 300;

// Reads epochs until its end, and says so after each.
HostChild endless(const LoaderOptions& options) {
  return HostChild([=](const HostChild::Tell& tell, int until) {
    auto loader = Loader::open(options);
    if (!loader.ok()) {
      std::fprintf(stderr, "%s\n", loader.error().message.c_str());
      return tell({.what = -1});
    }
    ::fcntl(until, F_SETFL, O_NONBLOCK);
    char end = 0;
    for (Epoch epoch = 0; ::read(until, &end, 1) < 0; ++epoch) {
      const bool right = reads_epoch(*loader, options, kSamples, epoch);
      tell({.what = right ? 1 : -2, .numbers = {epoch}});
      if (!right) return;
      ::usleep(1'000);
    }
    tell({.what = 2});
  });
}

// As an agent: consumes nothing.
HostChild helper(const std::string& host) {
  return HostChild([=](const HostChild::Tell& tell, int until) {
    const auto member = Member::join(host, {.budget = 256_MiB});
    if (!member.ok()) return tell({.what = -1});
    const auto keeper = Keeper::start(*member);
    const auto workshop = Workshop::open(*member, {.threads = 2, .scratch = 8_MiB});
    tell({.what = keeper.ok() && workshop.ok() ? 1 : -2});
    wait_for_end(until);
  });
}

// So many more epochs, and all of them right.
void reads_on(HostChild& learner, int epochs) {
  for (int i = 0; i < epochs; ++i) {
    const auto told = learner.next(std::chrono::seconds(60));
    ASSERT_TRUE(told) << "it waits for somebody";
    ASSERT_EQ(told->what, 1) << "epoch " << told->numbers[0];
  }
}

void take_all(HostChild& learner) {  // that it has said by now
  while (const auto told = learner.next(Duration{})) ASSERT_EQ(told->what, 1);
}

// The maker of the host, a helper, a learner: each is stopped for a while, and continued.
TEST(LoaderLeavingTest, WhoIsStoppedForAMinuteHoldsNobodyUpAndCorruptsNothingWhenItReturns) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  const Duration pause = std::getenv("FORELOAD_SOAK") != nullptr ? std::chrono::seconds(60) : std::chrono::seconds(3);
  std::vector<HostChild> members;
  const auto options_of = [&](std::uint64_t seed) {
    LoaderOptions options = in_host(ledger, host);
    options.seed = seed;
    return options;
  };
  members.push_back(endless(options_of(1)));
  reads_on(members[0], 1);
  members.push_back(helper(host));
  ASSERT_EQ(members[1].next()->what, 1);
  members.push_back(endless(options_of(2)));
  members.push_back(endless(options_of(3)));
  for (const std::size_t one : {2u, 3u}) reads_on(members[one], 1);  // now others have the memory, too
  for (const std::size_t victim : {0u, 1u, 2u}) {
    SCOPED_TRACE(victim);
    members[victim].stop();
    const Time until = now() + pause;
    HostChild newcomer = endless(options_of(4 + victim));
    reads_on(newcomer, 2);
    for (const std::size_t other : {0u, 2u, 3u}) {
      if (other == victim) continue;
      take_all(members[other]);
      reads_on(members[other], 3);
    }
    while (now() < until && !HasFailure()) {
      ::usleep(10'000);
      for (const std::size_t other : {0u, 2u, 3u}) {
        if (other != victim) take_all(members[other]);
      }
    }
    members[victim].signal(SIGCONT);
    for (const std::size_t one : {0u, 2u, 3u}) {
      take_all(members[one]);
      reads_on(members[one], 3);
    }
    ASSERT_FALSE(HasFailure());
  }
}

// How one that reads in a host ends: what the child does last, and what its parent sees of it.
struct Ending {
  const char* name;
  void (*end)();
  int code;
  int signal;
};

constexpr Ending kEndings[] = {
    {"exit without close", [] { std::exit(33); }, 33, 0},
    {"_exit", [] { ::_exit(33); }, 33, 0},
    {"SIGTERM", [] { ::raise(SIGTERM); }, 0, SIGTERM},
    {"SIGABRT", [] { ::raise(SIGABRT); }, 0, SIGABRT},
    {"another program", [] { ::execl("/bin/sleep", "sleep", "60", nullptr); }, 0, SIGKILL},
};

// R18: whatever way it takes, the others go on, and within a second or two the host has nothing of it.
TEST(LoaderLeavingTest, WhateverWayOneGoesNothingOfItIsLeft) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  for (const Ending& ending : kEndings) {
    SCOPED_TRACE(ending.name);
    const std::string host = fresh_host();
    HostChild stays = endless(in_host(ledger, host));
    reads_on(stays, 1);
    const Taken before = taken(**watch_host(*HostName::parse(host), std::chrono::seconds(5)));
    for (int round = 0; round < soak(50); ++round) {
      HostChild goes([&](const HostChild::Tell& tell, int) {
        auto* forgotten = new Loader(open(in_host(ledger, host)));
        Seen seen;
        (void)read_epoch(*forgotten, seen, static_cast<std::uint64_t>(round));
        tell({.what = testing::Test::HasFailure() ? -1 : 1});
        ending.end();
      });
      const auto told = goes.next();
      ASSERT_TRUE(told && told->what == 1) << "round " << round;
      const auto control = watch_host(*HostName::parse(host), std::chrono::seconds(5));
      ASSERT_TRUE(control.ok() && control->has_value());
      ASSERT_TRUE(comes_to(**control, before)) << "round " << round;
      ASSERT_EQ((*control)->members().size(), 1u);
      if (ending.signal == SIGKILL) goes.signal(SIGKILL);
      const int status = goes.wait();
      ASSERT_EQ(WIFSIGNALED(status) ? WTERMSIG(status) : 0, ending.signal);
      ASSERT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : 0, ending.code);
      take_all(stays);
    }
    reads_on(stays, 2);
  }
}

// Descriptors that a program started from here would inherit.
int inheritable() {
  int found = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) ++found;
  }
  return found;
}

TEST(LoaderLeavingTest, AProgramThatAMemberStartsInheritsNothing) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  HostChild first = endless(in_host(ledger, host));
  reads_on(first, 1);
  HostChild second([&](const HostChild::Tell& tell, int) {
    const int before = inheritable();
    Loader loader = open(in_host(ledger, host));
    Seen seen;
    (void)read_epoch(loader, seen, 3);
    tell({.what = inheritable() - before});
  });
  const auto told = second.next();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->what, 0);
}

// Running workers hold a core: while somebody else has the only one, nothing is prepared.
TEST(LoaderLeavingTest, NobodyPreparesWithoutACore) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  HostChild holder([&](const HostChild::Tell& tell, int until) {
    const auto member = Member::join(host, {.budget = 256_MiB, .cores = 1});
    auto core = member.ok() ? (*member)->control().take_core(now()) : std::nullopt;
    if (!core) return tell({.what = -1});
    tell({.what = 1});
    ::fcntl(until, F_SETFL, O_NONBLOCK);
    char end = 0;
    bool kept = true;
    for (; ::read(until, &end, 1) < 0; ::usleep(10'000)) kept = kept && (*member)->control().renew(*core, now());
    tell({.what = kept ? 2 : 3});
  });
  ASSERT_EQ(holder.next()->what, 1);
  HostChild learner = endless(in_host(ledger, host));
  const auto early = learner.next(std::chrono::milliseconds(2'500));  // longer than a core's time
  holder.go_on();
  const auto told = holder.next();
  ASSERT_TRUE(told);
  if (told->what == 2) {  // otherwise the machine was so busy that it lost the core
    EXPECT_FALSE(early) << "an epoch without a core";
  }
  reads_on(learner, 1);
}

}  // namespace
}  // namespace foreload
