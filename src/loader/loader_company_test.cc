// Several jobs with the same batches in one host: everything is prepared once, each job sees every batch once, and
// whatever happens to one of them, the others deliver what they would deliver alone.
#include <algorithm>
#include <random>

#include "host/survey.h"
#include "loader/host_learner.h"
#include "loader/seams.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSamples = 600;
constexpr Bytes kAll = kSamples * Ledger::kLength;

enum Said { kRight = 1, kEnd = 2, kOpened = 3, kRefused = -1, kFailed = -2, kWrong = -3 };

struct Habits {
  Epoch epochs = 3;
  Duration step{};         // with a batch
  bool writes = false;     // over its batches
  std::size_t keeps = 0;   // batches, until the end
  unsigned slots = 0;      // of its ring; 0: as usual
  std::uint64_t back = 0;  // after so many batches, to the beginning
};

// Reads from the loader's position to the end of that many epochs. Nothing: an error.
std::optional<Seen> read_all(Loader& loader, const Habits& habits) {
  Seen seen;
  const State start = loader.position();
  std::uint64_t taken = 0;
  std::vector<Batch> kept;
  while (loader.position().epoch < habits.epochs) {
    auto batch = loader.next();
    if (!batch.ok()) {
      std::fprintf(stderr, "%s\n", batch.error().message.c_str());
      return std::nullopt;
    }
    if (!*batch) continue;
    note_batch(loader, **batch, seen);
    const std::span<const std::byte> data = (*batch)->data();
    if (habits.writes) std::memset(const_cast<std::byte*>(data.data()), 0, data.size());
    if (habits.step != Duration{}) ::usleep(static_cast<useconds_t>(habits.step.count() / 1000));
    if (kept.size() < habits.keeps) kept.push_back(std::move(**batch));
    if (++taken == habits.back) {
      if (!loader.seek(start).ok()) return std::nullopt;
      seen.clear();
    }
  }
  Seen again;
  for (const Batch& batch : kept) {
    if (!habits.writes) note_batch(loader, batch, again);
  }
  EXPECT_TRUE(std::ranges::includes(seen, again)) << "what is kept stays as it was";
  return seen;
}

// Opens, says so, and reads when it may. Says what it had from the source, where it began, and what was replaced.
HostChild job(const LoaderOptions& options, const Habits& habits = {}) {
  return HostChild([=](const HostChild::Tell& tell, int until) {
    auto loader = open_with_seams(options, {.slots = habits.slots});
    if (!loader.ok()) {
      std::fprintf(stderr, "%s\n", loader.error().message.c_str());
      return tell({.what = kRefused});
    }
    const Epoch first = loader->position().epoch;
    tell({.what = kOpened, .numbers = {first}});
    wait_for_end(until);
    const auto seen = read_all(*loader, habits);
    if (!seen) return tell({.what = kFailed});
    Seen expected = reference(kSamples, options, habits.epochs);
    expected.erase(expected.begin(), expected.lower_bound({first, 0}));
    if (options.on_error == OnError::kReplace) expected = *seen;  // what comes instead is another test's business
    Bytes source = 0;
    const LoaderStats stats = loader->stats();
    for (const EpochStats& epoch : stats.epochs) source += epoch.source_bytes;
    const bool right = *seen == expected && !testing::Test::HasFailure();
    std::uint64_t replaced = 0;
    for (const Quarantined& bad : stats.quarantine) replaced += 1000 * bad.epoch + bad.position;
    for (const auto& [place, id] : *seen) replaced = replaced * 31 + id;
    tell({.what = right ? kRight : kWrong, .numbers = {source, stats.quarantine.size(), replaced}});
    wait_for_end(until);
  });
}

class Jobs {
 public:
  void add(const LoaderOptions& options, const Habits& habits = {}) { jobs_.push_back(job(options, habits)); }
  HostChild& operator[](std::size_t i) { return jobs_[i]; }
  // The same, and it has opened: the first of them feeds.
  void add_in_turn(const LoaderOptions& options, const Habits& habits = {}) {
    add(options, habits);
    await_opened();
  }
  // All have opened before one begins to read.
  void go() {
    await_opened();
    for (HostChild& one : jobs_) one.go_on();
  }
  Told right(std::size_t i, Duration patience = 60s) {
    const auto told = jobs_[i].next(patience);
    EXPECT_TRUE(told) << "job " << i << " does not come to its end";
    EXPECT_EQ(told.value_or(Told{}).what, kRight) << "job " << i;
    return told.value_or(Told{});
  }
  std::size_t size() const { return jobs_.size(); }

 private:
  void await_opened() {
    for (; opened_ < jobs_.size(); ++opened_) {
      const auto told = jobs_[opened_].next();
      ASSERT_TRUE(told && told->what == kOpened);
    }
  }

  std::vector<HostChild> jobs_;
  std::size_t opened_ = 0;
};

HostSurvey look_at(const std::string& host) {
  auto observer = Observer::open(host);
  EXPECT_TRUE(observer.ok() && *observer);
  return (*observer)->look().value_or(HostSurvey{});
}

// By all members, of all streams that still are.
std::uint64_t prepared(const std::string& host) {
  std::uint64_t samples = 0;
  const HostSurvey survey = look_at(host);
  for (const StreamSurvey& stream : survey.streams) {
    for (const auto& helper : stream.prepared_by) samples += helper.samples;
  }
  return samples;
}

TEST(LoaderCompanyTest, JobsWithTheSameBatchesReadAndPrepareThemOnce) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  Jobs jobs;
  for (int i = 0; i < 4; ++i) jobs.add(in_host(ledger, host), {.writes = i == 1});
  jobs.go();
  Bytes source = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) source += jobs.right(i).numbers[0];
  EXPECT_EQ(source, kAll);
  // A job that the machine let wait for long would have gone on alone.
  EXPECT_LT(prepared(host), 2 * 3 * kSamples);
  const HostSurvey survey = look_at(host);
  const auto feeds = [](const StreamSurvey& stream) { return stream.fed_by == 0; };
  EXPECT_EQ(survey.streams.size(), jobs.size());
  EXPECT_LT(std::ranges::count_if(survey.streams, feeds), 3) << "people see who is fed by whom";
}

TEST(LoaderCompanyTest, OtherBatchesAreNotShared) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  Jobs jobs;
  for (int i = 0; i < 3; ++i) {
    LoaderOptions options = in_host(ledger, host);
    if (i == 1) options.seed = 8;
    if (i == 2) options.batch = 12;
    jobs.add(options);
  }
  jobs.go();
  for (std::size_t i = 0; i < jobs.size(); ++i) (void)jobs.right(i);
  EXPECT_GE(prepared(host), 3 * 3 * kSamples);
}

TEST(LoaderCompanyTest, WhoeverWritesOverItsBatchesChangesThemForNobody) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  Jobs jobs;
  for (int i = 0; i < 3; ++i) jobs.add(in_host(ledger, host), {.step = i == 2 ? 1ms : 0ms, .writes = i != 2});
  jobs.go();
  for (std::size_t i = 0; i < jobs.size(); ++i) (void)jobs.right(i);
}

TEST(LoaderCompanyTest, ALateJobSharesTheCacheAndNothingElse) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  Jobs first;
  first.add(in_host(ledger, host), {.epochs = 1});
  first.go();
  EXPECT_EQ(first.right(0).numbers[0], kAll);
  const std::uint64_t before = prepared(host);
  Jobs late;
  late.add(in_host(ledger, host), {.epochs = 1});
  late.go();
  EXPECT_EQ(late.right(0).numbers[0], 0u);
  EXPECT_GE(prepared(host), before + kSamples);
}

TEST(LoaderCompanyTest, AFollowerBeginsWithTheNextEpoch) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  constexpr Epoch kEpochs = 6;
  Jobs first;
  first.add(in_host(ledger, host), {.epochs = kEpochs, .step = 4ms});
  first.go();
  ::usleep(200'000);
  LoaderOptions options = in_host(ledger, host);
  options.follow = true;
  options.epochs = kEpochs;
  HostChild follower = job(options, {.epochs = kEpochs});
  const auto opened = follower.next();
  ASSERT_TRUE(opened && opened->what == kOpened);
  EXPECT_GT(opened->numbers[0], 0u) << "its state says where it begins";
  EXPECT_LT(opened->numbers[0], kEpochs);
  follower.go_on();
  const auto told = follower.next(60s);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->what, kRight);
  EXPECT_EQ(told->numbers[0], 0u);
  (void)first.right(0);
}

TEST(LoaderCompanyTest, ASlowJobIsLeftBehindAndGoesOnAlone) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  for (const std::size_t slow : {0u, 1u}) {  // the one that prepares for all, or another one
    SCOPED_TRACE(slow);
    const std::string host = fresh_host();
    Jobs jobs;
    for (std::size_t i = 0; i < 2; ++i) {
      jobs.add_in_turn(in_host(ledger, host), {.epochs = i == slow ? 1u : 3u, .step = i == slow ? 150ms : 0ms});
    }
    jobs.go();
    (void)jobs.right(1 - slow);
    EXPECT_FALSE(jobs[slow].next(0s)) << "11 seconds are over";
    (void)jobs.right(slow);
  }
}

TEST(LoaderCompanyTest, AJobThatEndsLeavesTheOthersGoingOn) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  Jobs jobs;
  for (int i = 0; i < 3; ++i) {
    LoaderOptions options = in_host(ledger, host);
    options.epochs = static_cast<Epoch>(i + 1);
    jobs.add(options, {.epochs = options.epochs});
  }
  jobs.go();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    (void)jobs.right(i);
    jobs[i].go_on();
    EXPECT_EQ(jobs[i].wait(), 0);
  }
}

// The one that feeds has read all that it wants, and is still there.
TEST(LoaderCompanyTest, AJobWithMoreEpochsThanTheOneThatFeedsGoesOn) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  Jobs jobs;
  for (Epoch epochs = 1; epochs <= 3; ++epochs) {
    LoaderOptions options = in_host(ledger, host);
    options.epochs = epochs;
    jobs.add_in_turn(options, {.epochs = epochs});
  }
  jobs.go();
  for (std::size_t i = 0; i < jobs.size(); ++i) (void)jobs.right(i, 20s);
}

// It holds as many batches as it may, and pauses; its ring, or that of the one it reads, must not be short of slots.
TEST(LoaderCompanyTest, AJobThatKeepsBatchesAndPausesHoldsUpNobody) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  for (const std::size_t pausing : {0u, 1u}) {
    SCOPED_TRACE(pausing);
    const std::string host = fresh_host();
    Jobs jobs;
    for (std::size_t i = 0; i < 3; ++i) {
      Habits habits{.epochs = 2, .slots = 4};
      if (i == pausing) habits = {.epochs = 1, .step = 150ms, .keeps = 2, .slots = 4};
      LoaderOptions options = in_host(ledger, host);
      options.held_batches = 3;
      jobs.add_in_turn(options, habits);
    }
    jobs.go();
    for (const std::size_t i : {std::size_t{2}, 1 - pausing, pausing}) (void)jobs.right(i);  // the one that pauses last
  }
}

TEST(LoaderCompanyTest, WhatFailsForTheJobThatFeedsIsJudgedByEachJob) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  ledger.folder().write(Ledger::file(33), "too short");
  const std::string host = fresh_host();
  Jobs jobs;
  for (int i = 0; i < 2; ++i) jobs.add_in_turn(in_host(ledger, host), {.epochs = 2});
  jobs.go();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto told = jobs[i].next(60s);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->what, kFailed) << "the sample is bad for all";
  }
}

TEST(LoaderCompanyTest, AJobThatGoesBackGoesOnAlone) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  for (const std::size_t restless : {0u, 1u}) {
    const std::string host = fresh_host();
    Jobs jobs;
    for (std::size_t i = 0; i < 2; ++i) jobs.add(in_host(ledger, host), {.back = i == restless ? 100u : 0u});
    jobs.go();
    for (std::size_t i = 0; i < jobs.size(); ++i) (void)jobs.right(i);
  }
}

TEST(LoaderCompanyTest, EveryJobListsTheBadSamples) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  ledger.folder().write(Ledger::file(33), "too short");
  ledger.folder().write(Ledger::file(444), "too short");
  const std::string host = fresh_host();
  LoaderOptions options = in_host(ledger, host);
  options.on_error = OnError::kReplace;
  options.epochs = 2;
  Jobs jobs;
  for (int i = 0; i < 3; ++i) jobs.add(options, {.epochs = 2});
  jobs.go();
  const Told first = jobs.right(0);
  EXPECT_EQ(first.numbers[1], 4u);
  for (std::size_t i = 1; i < jobs.size(); ++i) {
    const Told other = jobs.right(i);
    EXPECT_EQ(other.numbers[1], first.numbers[1]);
    EXPECT_EQ(other.numbers[2], first.numbers[2]) << "the same places, and the same instead";
  }
}

// R4, R5: any of them, at any moment.
TEST(LoaderCompanyTest, WhoeverIsKilledTheOthersGoOnBitIdentically) {
  FORELOAD_SKIP_UNDER_TSAN();
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const Ledger ledger(kSamples);
  for (int round = 0; round < soak(100); ++round) {
    SCOPED_TRACE(round);
    const std::string host = fresh_host();
    Jobs jobs;
    for (int i = 0; i < 3; ++i) jobs.add(in_host(ledger, host), {.step = i == 1 ? 100us : 0us});
    jobs.go();
    ::usleep(random() % 60'000);
    const std::size_t victim = random() % jobs.size();
    jobs[victim].kill();
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (i != victim) (void)jobs.right(i);
    }
    if (HasFailure()) return;
  }
}

TEST(LoaderCompanyTest, WhoeverIsStoppedTheOthersGoOnAndNothingIsCorrupted) {
  FORELOAD_SKIP_UNDER_TSAN();
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const Ledger ledger(kSamples);
  for (int round = 0; round < soak(20, 2); ++round) {
    SCOPED_TRACE(round);
    const std::string host = fresh_host();
    Jobs jobs;
    for (int i = 0; i < 3; ++i) jobs.add(in_host(ledger, host), {.step = 200us, .writes = i == 0});
    jobs.go();
    ::usleep(random() % 30'000);
    const std::size_t victim = random() % jobs.size();
    jobs[victim].stop();
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (i != victim) (void)jobs.right(i);
    }
    jobs[victim].signal(SIGCONT);
    (void)jobs.right(victim);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace foreload
