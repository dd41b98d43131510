// A control block with several members that are threads of one process, over one mapping: so TSan sees how they are
// ordered. And the cores, with real processes.
#include "host/control.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "base/record_lock.h"
#include "host/host_testing.h"

namespace foreload {
namespace {

constexpr unsigned kMembers = 4;
constexpr Bytes kBudget = 1000;

// A member that is a thread. Record locks belong to the process; one through a file description of its own looks to all
// like another process's, and is free when that is closed.
class ThreadMember {
 public:
  // REQUIRES: no other member runs.
  ThreadMember(const Control& host, unsigned index) : control_(host.beside()) {
    if (!control_.enter(index)) std::abort();
    const int file = control_.memory().file();
    unlock_byte(file, index);
    life_ = Descriptor(::open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_RDWR | O_CLOEXEC));
    struct flock place {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = static_cast<off_t>(index), .l_len = 1, .l_pid = 0
    };
    if (::fcntl(life_.get(), F_OFD_SETLK, &place) != 0) std::abort();
  }

  Control& control() { return control_; }
  void die() { life_ = Descriptor(); }  // leaves all that it has behind
  void leave() {
    control_.leave();
    life_ = Descriptor();
  }

 private:
  Control control_;
  Descriptor life_;
};

// All that a member does with the control block, at random.
class Life {
 public:
  Life(Control& control, unsigned seed) : control_(control), random_(seed) {}

  void step() {
    switch (random_() % 8) {
      case 0:
        (void)control_.reserve(random_() % 300).ok();
        return;
      case 1:
        find();
        return;
      case 2:
        if (const auto object = any()) (void)control_.hold(*object, random_() % 2 == 0).ok();
        return;
      case 3:
        if (const auto object = any()) (void)control_.grow(*object, random_() % 300).ok();
        return;
      case 4:
        if (const auto object = any()) (void)control_.drop(*object).ok();
        return;
      case 5:
        if (const auto object = any()) (void)control_.withdraw(*object).ok();
        return;
      case 6:
        for (const MemberId member : control_.dead()) control_.clear(member);
        return;
      default:
        control_.wait_for_version(control_.version(), now() + std::chrono::microseconds(10));
        (void)control_.members();
    }
  }

 private:
  void find() {
    const ObjectKey key{ObjectKey::Kind::kArena, random_() % 4, 0};
    const Bytes size = 4096 * (1 + key.first);
    const auto found = control_.find_or_add(key, size, 10 * key.first);
    if (!found.ok()) return;
    EXPECT_EQ(found->object.key, key);
    EXPECT_EQ(found->object.bytes, size) << "an entry of two lives";
  }
  std::optional<ObjectId> any() {
    const auto objects = control_.objects();
    return objects.empty() ? std::nullopt : std::optional(objects[random_() % objects.size()].id);
  }

  Control& control_;
  std::mt19937 random_;
};

// Whatever members do at the same time, and whoever of them dies: at the end nothing is taken, and all can be had.
TEST(ControlTest, MembersAtTheSameTimeLoseNothing) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Control host = *Control::create(kBudget, 1);
  for (int round = 0; round < soak(200, 10); ++round) {
    SCOPED_TRACE(round);
    std::vector<ThreadMember> members;
    for (unsigned i = 0; i < kMembers; ++i) members.emplace_back(host, i);
    {
      std::vector<std::jthread> threads;
      for (unsigned i = 0; i < kMembers; ++i) {
        const unsigned own = random();
        const bool dies = i % 2 == 1;
        threads.emplace_back([&member = members[i], own, dies] {
          Life life(member.control(), own);
          for (int n = 0; n < 100; ++n) life.step();
          if (dies) member.die();
        });
      }
    }
    members[2].leave();
    Control& last = members[0].control();
    for (const MemberId member : last.dead()) last.clear(member);
    for (const ObjectInfo& object : last.objects()) ASSERT_TRUE(last.withdraw(object.id).ok());
    ASSERT_TRUE(last.collect().ok());
    ASSERT_TRUE(last.objects().empty());
    ASSERT_EQ(last.members().size(), 1u);
    ASSERT_TRUE(last.reserve(kBudget).ok());
    members[0].leave();
  }
}

// The lock is what keeps them apart: a reservation of all goes to one.
TEST(ControlTest, TheLastBytesOfTheBudgetGoToOne) {
  Control host = *Control::create(kBudget, 1);
  std::vector<ThreadMember> members;
  for (unsigned i = 0; i < kMembers; ++i) members.emplace_back(host, i);
  std::atomic<Bytes> taken{0};
  std::vector<std::jthread> threads;
  for (ThreadMember& member : members) {
    threads.emplace_back([&control = member.control(), &taken] {
      for (int round = 0; round < 500; ++round) {
        if (!control.reserve(kBudget / 2 + 1).ok()) continue;
        EXPECT_EQ(taken.fetch_add(1), 0u) << "two have more than half of it";
        taken.fetch_sub(1);
        EXPECT_TRUE(control.reserve(0).ok());
      }
    });
  }
}

// A plain number per core, which only who holds it writes: TSan sees whether one is done before the next begins. Time
// stands still, so nobody is late.
TEST(ControlTest, ACoreHasOneHolderAtATime) {
  constexpr unsigned kCores = 2;
  static constexpr Time kNow{1};
  Control host = *Control::create(kBudget, kCores);
  std::vector<ThreadMember> members;
  for (unsigned i = 0; i < kMembers; ++i) members.emplace_back(host, i);
  std::array<std::uint64_t, kCores> work{};
  std::atomic<std::uint64_t> held{0};
  {
    std::vector<std::jthread> threads;
    for (ThreadMember& member : members) {
      threads.emplace_back([&control = member.control(), &work, &held] {
        for (int round = 0; round < 2'000; ++round) {
          auto core = control.take_core(kNow);
          if (!core) continue;
          held.fetch_add(1, std::memory_order_relaxed);
          ++work[core->index];
          EXPECT_TRUE(control.renew(*core, kNow));
          control.give_back(*core);
        }
      });
    }
  }
  EXPECT_EQ(work[0] + work[1], held);
  EXPECT_GT(held, 0u);
  for (unsigned i = 0; i < kCores; ++i) EXPECT_TRUE(members[0].control().take_core(kNow)) << "one was lost";
}

// Workers of three processes, more of them than cores: those who run are counted where all see it.
TEST(ControlTest, WorkersOfAllProcessesTogetherHoldNoMoreThanTheHostsCores) {
  const SharedMemory counts = *SharedMemory::create(4096, "a test");
  ASSERT_TRUE(counts.reserve(0, 4096).ok());
  auto* running = new (counts.bytes().data()) std::array<std::atomic<int>, 2>{};
  for (const unsigned cores : {1u, 2u}) {
    const std::string host = fresh_host();
    std::vector<HostChild> children;
    for (int i = 0; i < 3; ++i) {
      children.emplace_back([&](const HostChild::Tell& tell, int) {
        const auto member = Member::join(host, {.budget = 1_GiB, .cores = cores});
        if (!member.ok()) return tell({.what = -1});
        std::atomic<std::uint64_t> most{0};
        std::atomic<std::uint64_t> turns{0};
        const auto worker = [&, &control = (*member)->control()] {
          for (int round = 0; round < soak(20'000, 500); ++round) {
            const auto core = control.take_core(now());
            if (!core) {
              ::usleep(20);
              continue;
            }
            const auto beside = static_cast<std::uint64_t>((*running)[cores - 1].fetch_add(1) + 1);
            for (std::uint64_t seen = most; seen < beside && !most.compare_exchange_weak(seen, beside);) {
            }
            ++turns;
            ::usleep(10);
            (*running)[cores - 1].fetch_sub(1);
            control.give_back(*core);
          }
        };
        {
          std::vector<std::jthread> threads;
          for (int thread = 0; thread < 3; ++thread) threads.emplace_back(worker);
        }
        tell({.what = 1, .numbers = {most, turns}});
      });
    }
    std::uint64_t turns = 0;
    for (HostChild& child : children) {
      const auto told = child.next(std::chrono::seconds(60));
      ASSERT_TRUE(told);
      ASSERT_EQ(told->what, 1);
      EXPECT_LE(told->numbers[0], cores);
      turns += told->numbers[1];
    }
    EXPECT_GT(turns, 0u);
  }
}

// Takes the only core, says who it is and when that was, and at its end whether it still has it.
HostChild core_holder(const std::string& host) {
  return HostChild([=](const HostChild::Tell& tell, int until) {
    const auto member = Member::join(host, {.budget = 1_GiB, .cores = 1});
    if (!member.ok()) return tell({.what = -1});
    const MemberId self = (*member)->id();
    const Time taken = now();
    auto core = (*member)->control().take_core(taken);
    if (!core) return tell({.what = -2});
    tell({.what = 1, .numbers = {static_cast<std::uint64_t>(taken.count()), self.index, self.generation}});
    wait_for_end(until);
    tell({.what = (*member)->control().renew(*core, now()) ? 2 : 3});
  });
}

// This process in a host beside one that has its only core.
class CoreTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto told = holder_.next();
    ASSERT_TRUE(told && told->what == 1);
    taken_ = Time(static_cast<std::int64_t>(told->numbers[0]));
    id_ = {static_cast<std::uint8_t>(told->numbers[1]), static_cast<std::uint16_t>(told->numbers[2])};
    auto member = Member::join(host_, {.budget = 1_GiB});
    ASSERT_TRUE(member.ok());
    member_ = std::move(*member);
  }
  Control& control() { return member_->control(); }

  const std::string host_ = fresh_host();
  HostChild holder_ = core_holder(host_);
  Time taken_{};
  MemberId id_{};
  std::shared_ptr<Member> member_;
};

// Times are those of one clock for all processes.
TEST_F(CoreTest, TheCoreOfOneWhoIsStoppedIsFreeAfterItsTimeAndNotBefore) {
  holder_.stop();
  std::optional<Control::Core> core;
  Time asked{};
  for (int i = 0; i < 10'000 && !core; ++i) {
    asked = now();
    core = control().take_core(asked);
    ::usleep(1'000);
  }
  ASSERT_TRUE(core);
  EXPECT_GT(asked - taken_, std::chrono::seconds(1));
  EXPECT_FALSE(control().take_core(asked)) << "there is one core";
  holder_.signal(SIGCONT);
  holder_.finish();
  const auto late = holder_.next();
  ASSERT_TRUE(late);
  EXPECT_EQ(late->what, 3) << "who was stopped believes that it still has the core";
}

TEST_F(CoreTest, TheCoreOfTheDeadIsFreeWhenTheyAreCleared) {
  holder_.kill();
  control().clear(id_);
  EXPECT_TRUE(control().take_core(now()));
}

}  // namespace
}  // namespace foreload
