// Loaders of several processes in one host: each must deliver what it would deliver alone, whatever happens to the
// others.
#include <random>

#include "loader/host_learner.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSamples = 600;
constexpr Bytes kAll = kSamples * Ledger::kLength;

HostChild learner(const LoaderOptions& options, Epoch epochs, Duration step = {}) {
  return learner(options, {.samples = kSamples, .epochs = epochs, .step = step});
}

TEST(LoaderHostTest, AProcessAloneInAHostReadsWhatItWouldReadWithout) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  HostChild child = learner(in_host(ledger, fresh_host()), 3);
  ASSERT_EQ(child.next()->what, 3);
  for (int e = 0; e < 3; ++e) {
    const auto told = child.next();
    ASSERT_TRUE(told);
    EXPECT_EQ(told->what, 1);
    EXPECT_EQ(told->numbers[0], e == 0 ? kAll : 0u) << "epoch " << e;
  }
  EXPECT_EQ(child.next()->what, 2);
}

TEST(LoaderHostTest, RanksShareOneCacheAndEverySampleIsReadOnce) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  constexpr std::uint32_t kWorld = 3;
  std::vector<HostChild> ranks;
  for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
    LoaderOptions options = in_host(ledger, host);
    options.rank = rank;
    options.world = kWorld;
    ranks.push_back(learner(options, 3));
  }
  Bytes source = 0;
  for (HostChild& rank : ranks) {
    ASSERT_EQ(rank.next()->what, 3);
    source += finish_epochs(rank, 3);
  }
  // What was read ahead of need may be counted in a batch that nobody takes here; nothing is read twice.
  EXPECT_LE(source, kAll);
  EXPECT_GT(source, kAll / 2);
}

TEST(LoaderHostTest, JobsWithOtherSeedsAndBatchesShareTheCache) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  std::vector<HostChild> jobs;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    LoaderOptions options = in_host(ledger, host);
    options.seed = seed;
    options.batch = 5 + seed;
    jobs.push_back(learner(options, 2));
  }
  Bytes source = 0;
  for (HostChild& job : jobs) {
    ASSERT_EQ(job.next()->what, 3);
    source += finish_epochs(job, 2);
  }
  EXPECT_LE(source, kAll);
  EXPECT_GT(source, kAll / 2);
}

TEST(LoaderHostTest, TheCacheOutlivesTheJobThatFilledItWhileSomebodyHasIt) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  HostChild first = learner(in_host(ledger, host), 1);
  ASSERT_EQ(first.next()->what, 3);
  ASSERT_EQ(first.next()->what, 1);
  HostChild second = learner(in_host(ledger, host), 1);
  ASSERT_EQ(second.next()->what, 3);
  const auto told = second.next();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->what, 1);
  EXPECT_EQ(told->numbers[0], 0u);
}

// R4: one of several is killed at any moment; the others deliver what they would have delivered.
TEST(LoaderHostTest, WhoeverIsKilledTheOthersGoOnBitIdentically) {
  FORELOAD_SKIP_UNDER_TSAN();
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const Ledger ledger(kSamples);
  for (int round = 0; round < soak(100); ++round) {
    SCOPED_TRACE(round);
    const std::string host = fresh_host();
    std::vector<HostChild> jobs;
    for (std::uint64_t i = 0; i < 3; ++i) {
      LoaderOptions options = in_host(ledger, host);
      options.seed = i % 2;
      jobs.push_back(learner(options, 3, std::chrono::microseconds(i == 2 ? 200 : 0)));
    }
    ::usleep(random() % 60'000);
    jobs[2].kill();
    for (std::size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(jobs[i].next()->what, 3);
      finish_epochs(jobs[i], 3);
      ASSERT_FALSE(HasFailure());
    }
  }
}

// A member that is stopped, maybe inside of a sample of another's, holds nobody up, and corrupts nothing when it goes
// on.
TEST(LoaderHostTest, WhoeverIsStoppedTheOthersGoOnAndNothingIsCorrupted) {
  FORELOAD_SKIP_UNDER_TSAN();
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const Ledger ledger(kSamples);
  for (int round = 0; round < soak(20, 2); ++round) {
    SCOPED_TRACE(round);
    const std::string host = fresh_host();
    std::vector<HostChild> jobs;
    for (std::uint64_t i = 0; i < 2; ++i) {
      LoaderOptions options = in_host(ledger, host);
      options.seed = i;
      jobs.push_back(learner(options, 4));
    }
    for (HostChild& job : jobs) ASSERT_EQ(job.next()->what, 3);
    ::usleep(random() % 10'000);
    jobs[1].stop();
    finish_epochs(jobs[0], 4);  // it waits for nobody who is stopped
    jobs[1].signal(SIGCONT);
    finish_epochs(jobs[1], 4);
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace foreload
