// Loaders of several processes in one host: each must deliver what it would deliver alone, whatever happens to the
// others.
#include <algorithm>
#include <random>

#include "host/host_testing.h"
#include "loader/ledger.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSamples = 600;
constexpr Bytes kAll = kSamples * Ledger::kLength;

LoaderOptions in_host(const Ledger& ledger, const std::string& host, std::uint32_t rank = 0, std::uint32_t world = 1) {
  LoaderOptions options = ledger.options(8);
  options.host = host;
  options.memory = 256_MiB;
  options.rank = rank;
  options.world = world;
  return options;
}

// What this learner must see of the reference.
Seen share_of(const Loader& loader, const LoaderOptions& options, Epoch epochs) {
  const Seen all = reference(kSamples, options, epochs);
  Seen mine;
  for (Epoch e = 0; e < epochs; ++e) {
    for (std::uint64_t step = 0; step < loader.batches_per_epoch(); ++step) {
      const Share share = loader.share(step);
      for (Position p = share.first; p < share.first + share.count; ++p) mine[{e, p}] = all.at({e, p});
    }
  }
  return mine;
}

// A learner: says when it is there, reads epochs, says after each whether all was right, and what came from the source.
HostChild learner(const LoaderOptions& options, Epoch epochs, Duration step = {}) {
  return HostChild([=](const HostChild::Tell& tell, int until) {
    auto opened = Loader::open(options);
    if (!opened.ok()) {
      std::fprintf(stderr, "%s\n", opened.error().message.c_str());
      return tell({.what = -1});
    }
    Loader& loader = *opened;
    tell({.what = 3});
    const Seen expected = share_of(loader, options, epochs);
    Seen seen;
    for (Epoch e = 0; e < epochs; ++e) {
      for (std::uint64_t n = 0; n <= loader.batches_per_epoch(); ++n) {
        if (!read_epoch(loader, seen, 1)) return tell({.what = -2});
        if (step != Duration{}) ::usleep(static_cast<useconds_t>(step.count() / 1000));
      }
      const EpochStats stats = loader.stats().epochs.back();
      const bool right = std::ranges::includes(expected, seen) && !testing::Test::HasFailure();
      tell({.what = right ? 1 : -3, .numbers = {stats.source_bytes, stats.samples, seen.size()}});
    }
    if (seen != expected) tell({.what = -4});
    tell({.what = 2});
    wait_for_end(until);
  });
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
  for (std::uint32_t rank = 0; rank < kWorld; ++rank) ranks.push_back(learner(in_host(ledger, host, rank, kWorld), 3));
  Bytes source = 0;
  for (HostChild& rank : ranks) {
    ASSERT_EQ(rank.next()->what, 3);
    for (int e = 0; e < 3; ++e) {
      const auto told = rank.next();
      ASSERT_TRUE(told);
      EXPECT_EQ(told->what, 1);
      source += told->numbers[0];
    }
    EXPECT_EQ(rank.next()->what, 2);
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
    for (int e = 0; e < 2; ++e) {
      const auto told = job.next();
      ASSERT_TRUE(told);
      EXPECT_EQ(told->what, 1);
      source += told->numbers[0];
    }
    EXPECT_EQ(job.next()->what, 2);
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
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(jobs[static_cast<std::size_t>(i)].next()->what, 3);
      for (int e = 0; e < 3; ++e) {
        const auto told = jobs[static_cast<std::size_t>(i)].next();
        ASSERT_TRUE(told);
        ASSERT_EQ(told->what, 1);
      }
      ASSERT_EQ(jobs[static_cast<std::size_t>(i)].next()->what, 2);
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
    for (int e = 0; e < 4; ++e) {
      const auto told = jobs[0].next(std::chrono::seconds(30));
      ASSERT_TRUE(told) << "it waits for somebody who is stopped";
      ASSERT_EQ(told->what, 1);
    }
    ASSERT_EQ(jobs[0].next()->what, 2);
    jobs[1].signal(SIGCONT);
    for (int e = 0; e < 4; ++e) {
      const auto told = jobs[1].next();
      ASSERT_TRUE(told);
      ASSERT_EQ(told->what, 1);
    }
    ASSERT_EQ(jobs[1].next()->what, 2);
  }
}

}  // namespace
}  // namespace foreload
