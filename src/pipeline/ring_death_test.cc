// A worker, or a reader, in another process is stopped between any two machine instructions of what it does with a
// ring. Then it dies, or it stays so while the ring turns over and goes on afterwards: every batch comes out whole, and
// no slot is lost.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>

#include "base/clock.h"
#include "base/sanitizer.h"
#include "base/shared_memory.h"
#include "pipeline/ring.h"

namespace foreload {
namespace {

constexpr RingOptions kOptions{.slots = 3, .batch = 2, .sample_bytes = 8};
constexpr MemberId kFeeder{0, 1};
constexpr MemberId kHelper{1, 1};
constexpr int kMostSteps = 100'000;

constexpr std::uint64_t kStage = 1'000'000;

// A batch stage that changes all of it in place: wrong unless it is done once, by one.
void complete(Ring& ring, std::uint32_t slot) {
  for (std::uint32_t i = 0; i < kOptions.batch; ++i) {
    std::uint64_t value = 0;
    std::memcpy(&value, ring.tensor({slot, i}).data(), sizeof value);
    value += kStage;
    std::memcpy(ring.tensor({slot, i}).data(), &value, sizeof value);
  }
  ring.publish(slot);
}

// Prepares whatever it finds: a sample's tensor is its position, until the batch stage.
void work(Ring& ring) {
  while (const auto item = ring.claim()) {
    const std::uint64_t value = ring.position(*item);
    std::memcpy(ring.tensor(*item).data(), &value, sizeof value);
    if (ring.finish(*item, {})) complete(ring, item->slot);
  }
}

constexpr int kWrongBatch = 3;

// What the learner of another job does.
void read(Ring& ring) {
  const auto place = ring.add_reader();
  if (!place) ::_exit(2);
  if (ring.attach(*place, 0, false)) {
    for (std::uint64_t number = 0; number < 3; ++number) {
      const auto slot = ring.take(*place, number);
      if (!slot) break;
      std::array<std::uint64_t, kOptions.batch> values;
      std::memcpy(values.data(), ring.data(*slot).data(), sizeof values);
      for (std::uint64_t i = 0; i < kOptions.batch; ++i) {
        if (values[i] != kStage + number * kOptions.batch + i) ::_exit(kWrongBatch);
      }
      ring.release(*place, *slot);
    }
    ring.detach(*place);
  }
  ring.remove_reader(*place);
}

// Feeds, prepares and consumes, and does what a fetcher does about the dead and the stuck.
class Learner {
 public:
  Learner() : memory_(*SharedMemory::create(Ring::region_bytes(kOptions), "a test")) {
    ring_ = Ring::create(kOptions, map());
    ring_->set_member(kFeeder, &signal_, [this](MemberId member) { return member == kFeeder || helper_lives; });
    ring_->begin(0);
    helper_ = Ring::attach(kOptions, map());
    helper_->set_member(kHelper, &signal_);
  }

  bool helper_lives = true;
  Ring& helper() { return *helper_; }

  void open(std::uint64_t number, std::uint32_t ready = kOptions.batch) {
    const BatchPlan plan{.number = number, .step = number, .first = number * kOptions.batch, .count = kOptions.batch};
    const auto slot = ring_->free_slot();
    ASSERT_TRUE(slot) << "for batch " << number;
    ring_->open(*slot, plan);
    plans_[*slot] = plan;
    for (std::uint32_t i = 0; i < ready; ++i) mark_ready(*slot, i);
  }
  void prepare_one() {
    const auto item = ring_->claim();
    ASSERT_TRUE(item);
    const std::uint64_t value = plans_[item->slot].first + item->index;
    std::memcpy(ring_->tensor(*item).data(), &value, sizeof value);
    ASSERT_FALSE(ring_->finish(*item, {}));
  }
  void rest_is_ready(std::uint64_t number, std::uint32_t from) {
    for (const auto& [slot, plan] : plans_) {
      if (plan.number != number) continue;
      for (std::uint32_t i = from; i < plan.count; ++i) mark_ready(slot, i);
    }
  }
  // Nobody waits for other readers any longer.
  void go_on_alone() {
    ring_->take_back();
    for (const ReaderAt& reader : ring_->readers()) {
      if (reader.reader != Ring::kOwnReader) ring_->dismiss(reader.reader);
    }
  }
  void prepare() { work(*ring_); }
  void deliver(std::uint64_t number) {
    for (int turn = 0; turn < 10; ++turn) {
      if (const auto slot = ring_->take(Ring::kOwnReader, number)) return check(*slot, number);
      ring_->take_back();
      work(*ring_);
      for (std::uint32_t slot = 0; slot < kOptions.slots; ++slot) redo_if_stuck(slot);
    }
    FAIL() << "batch " << number << " never comes";
  }

 private:
  Region map() const { return *Region::map_file(memory_.file(), 0, Ring::region_bytes(kOptions), "a test"); }
  void mark_ready(std::uint32_t slot, std::uint32_t i) { ring_->mark_ready({slot, i}, {.id = i}, {}, now()); }
  void redo_if_stuck(std::uint32_t slot) {
    const Time much_later = now() + std::chrono::hours(1);
    if (!ring_->is_stuck(slot, much_later, std::chrono::minutes(1)) || !ring_->retire(slot)) return;
    open(plans_.extract(slot).mapped().number);
  }
  void check(std::uint32_t slot, std::uint64_t number) {
    std::array<std::uint64_t, kOptions.batch> values;
    std::memcpy(values.data(), ring_->data(slot).data(), sizeof values);
    for (std::uint64_t i = 0; i < kOptions.batch; ++i) EXPECT_EQ(values[i], kStage + number * kOptions.batch + i);
    ring_->release(Ring::kOwnReader, slot);
  }

  SharedMemory memory_;
  WorkSignal signal_;
  std::shared_ptr<Ring> ring_;
  std::shared_ptr<Ring> helper_;
  std::map<std::uint32_t, BatchPlan> plans_;
};

// The helper, as a process that is stepped through its work.
class Stepped {
 public:
  Stepped(Ring& ring, void (*body)(Ring&)) : memory_(*SharedMemory::create(4096, "a test")) {
    pid_ = ::fork();
    if (pid_ == 0) {
      if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(77);
      ::raise(SIGSTOP);
      stage() = 1;
      body(ring);
      stage() = 2;
      ::_exit(0);
    }
    wait();
    for (int i = 0; i < kMostSteps && pid_ > 0 && stage() == 0; ++i) one_step();
  }
  ~Stepped() { kill(); }
  Stepped(const Stepped&) = delete;
  Stepped& operator=(const Stepped&) = delete;

  bool refused() const { return pid_ < 0 && WIFEXITED(status_) && WEXITSTATUS(status_) == 77; }
  // False: its work was done before.
  bool step(int count) {
    for (int i = 0; i < count && pid_ > 0 && stage() == 1; ++i) one_step();
    return pid_ > 0 && stage() == 1;
  }
  void go_on() {
    if (pid_ > 0 && ::ptrace(PTRACE_DETACH, pid_, nullptr, nullptr) == 0) wait();
    EXPECT_TRUE(WIFEXITED(status_) && WEXITSTATUS(status_) == 0) << status_;
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    while (pid_ > 0) wait();
  }

 private:
  // 1: it works; 2: it has done so.
  std::atomic<int>& stage() const { return *reinterpret_cast<std::atomic<int>*>(memory_.bytes().data()); }
  void one_step() {
    if (::ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr) == 0) wait();
  }
  void wait() {
    if (::waitpid(pid_, &status_, 0) != pid_ || !WIFSTOPPED(status_)) pid_ = -1;
  }

  SharedMemory memory_;
  pid_t pid_ = -1;
  int status_ = 0;
};

// Batch 0 is open, and `done` samples of it are prepared when the helper comes. False: the helper was done before that
// step.
bool one_round(int steps, int done, bool dies) {
  Learner learner;
  learner.open(0);
  for (int i = 0; i < done; ++i) learner.prepare_one();
  Stepped helper(learner.helper(), work);
  if (!helper.step(steps)) return false;
  if (dies) {
    helper.kill();
    learner.helper_lives = false;
  }
  for (std::uint64_t number = 0; number < 7; ++number) {
    if (number > 0) learner.open(number);
    learner.deliver(number);
    if (testing::Test::HasFailure()) return false;
  }
  // Now the late one meets batches that are half ready.
  learner.open(7, 1);
  learner.prepare_one();
  learner.open(8, 1);
  if (!dies) helper.go_on();
  learner.helper_lives = false;
  learner.rest_is_ready(7, 1);
  learner.rest_is_ready(8, 1);
  learner.deliver(7);
  learner.deliver(8);
  for (std::uint64_t number = 9; number < 12; ++number) learner.open(number);  // all slots are there
  for (std::uint64_t number = 9; number < 12; ++number) learner.deliver(number);
  return true;
}

// `done` batches have been taken by the learner when the other one comes to read them.
bool one_reading(int steps, int done, bool dies) {
  Learner learner;
  for (std::uint64_t number = 0; number < 3; ++number) learner.open(number);
  learner.prepare();
  std::uint64_t number = 0;
  for (; number < static_cast<std::uint64_t>(done); ++number) learner.deliver(number);
  Stepped helper(learner.helper(), read);
  if (!helper.step(steps)) return false;
  if (dies) {
    helper.kill();
    learner.helper_lives = false;
  }
  for (; number < 3; ++number) learner.deliver(number);
  for (; number < 9; ++number) {
    learner.go_on_alone();
    learner.open(number);
    learner.deliver(number);
    if (testing::Test::HasFailure()) return false;
  }
  if (!dies) helper.go_on();
  learner.go_on_alone();
  for (number = 9; number < 12; ++number) learner.open(number);  // all slots are there
  for (number = 9; number < 12; ++number) learner.deliver(number);
  return true;
}

void at_every_step(bool dies, bool (*round)(int steps, int done, bool dies), void (*body)(Ring&)) {
  if (kHasSanitizer) GTEST_SKIP() << "the plain build steps through";
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const unsigned stride = std::getenv("FORELOAD_SOAK") != nullptr ? 1 : 29;
  {
    Learner learner;
    learner.open(0);
    learner.deliver(0);  // what is linked when it is first called is linked now
    if (Stepped(learner.helper(), body).refused()) GTEST_SKIP() << "this process may not trace another";
  }
  for (const int done : {0, 1}) {
    int steps = static_cast<int>(random() % stride);
    while (steps < kMostSteps && round(steps, done, dies)) {
      ASSERT_FALSE(testing::Test::HasFailure()) << "after " << steps << " instructions, " << done << " done before";
      steps += static_cast<int>(1 + random() % (2 * stride - 1));
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << "after " << steps << " instructions, " << done << " done before";
    ASSERT_GT(steps, 100) << "it did nothing";
  }
}

TEST(RingDeathTest, AWorkerMayDieBetweenAnyTwoInstructions) {
  at_every_step(true, one_round, work);
}

TEST(RingDeathTest, AWorkerMayBeStoppedBetweenAnyTwoInstructionsWhileTheRingTurnsOver) {
  at_every_step(false, one_round, work);
}

TEST(RingDeathTest, AReaderMayDieBetweenAnyTwoInstructions) {
  at_every_step(true, one_reading, read);
}

TEST(RingDeathTest, AReaderMayBeStoppedBetweenAnyTwoInstructionsWhileTheRingTurnsOver) {
  at_every_step(false, one_reading, read);
}

}  // namespace
}  // namespace foreload
