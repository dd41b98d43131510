#include "lab/run_story.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "policy/replay.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMs = 1'000'000;

Event open_event(std::uint64_t samples, std::uint64_t batch, std::uint64_t world = 1, std::uint64_t rank = 0) {
  return {.time = 0ms, .kind = EventKind::kOpen, .a = samples, .b = batch, .c = world << 32 | rank};
}

Event waited(Time at, std::uint32_t epoch, std::uint64_t step, std::uint64_t fetch_ms, std::uint64_t prep_ms) {
  return {.time = at, .kind = EventKind::kWaited, .epoch = epoch, .a = step, .b = fetch_ms * kMs, .c = prep_ms * kMs};
}

Event opened(Time at, std::uint32_t epoch, std::uint64_t step, std::uint64_t count) {
  return {.time = at, .kind = EventKind::kSlotOpened, .epoch = epoch, .a = step, .b = step % 4, .c = count};
}

Event sample(EventKind kind, Time at, std::uint32_t epoch, Position position, SampleId id, Bytes length) {
  return {.time = at, .kind = kind, .epoch = epoch, .position = position, .a = id, .b = length};
}

Event read_done(Time at, SampleId id, Bytes length, Duration took, Origin origin = Origin::kSource, bool fill = false) {
  return {.time = at,
          .kind = EventKind::kReadDone,
          .position = ReadFields{origin, origin, fill, 0}.pack(),
          .a = id,
          .b = length,
          .c = static_cast<std::uint64_t>(took.count())};
}

Event prep_done(Time at, SampleId id, Duration took, std::uint16_t thread = 1) {
  return {.time = at,
          .kind = EventKind::kPrepDone,
          .thread = thread,
          .a = id,
          .b = static_cast<std::uint64_t>(took.count())};
}

// Steps of 20 ms for 4 samples, whatever was waited for between them.
TEST(RunStoryTest, TheLearnersRateIsThatOfItsStepsAlone) {
  std::vector<Event> events{open_event(40, 4)};
  for (std::uint64_t step = 0; step < 5; ++step) events.push_back(opened(1ms, 0, step, 4));
  Time at = 40ms;
  events.push_back(waited(at, 0, 0, 30, 0));
  for (const unsigned wait : {0u, 50u, 7u, 100u}) {
    at += 20ms + std::chrono::milliseconds(wait);
    events.push_back(waited(at, 0, events.size() - 6, wait, 0));
  }
  const auto rate = learner_rate(story_of(events));
  ASSERT_TRUE(rate.has_value());
  EXPECT_NEAR(*rate, 4 / 0.020, 1e-6);
  events.resize(events.size() - 2);
  EXPECT_FALSE(learner_rate(story_of(events)).has_value()) << "of three batches";
}

TEST(RunStoryTest, AnEpochHasItsRateAndItsStallsByCause) {
  const std::vector<Event> events{open_event(8, 4),           opened(1ms, 0, 0, 4),
                                  opened(1ms, 0, 1, 4),       waited(50ms, 0, 0, 30, 10),
                                  waited(100ms, 0, 1, 0, 20), {.time = 110ms, .kind = EventKind::kEpochEnd}};
  const RunStory story = story_of(events);
  ASSERT_EQ(story.epochs.size(), 1u);
  const EpochStory& epoch = story.epochs[0];
  EXPECT_EQ(epoch.samples, 8u);
  EXPECT_EQ(epoch.batches, 2u);
  EXPECT_NEAR(epoch.begin, 0.010, 1e-9);  // the first wait began there
  EXPECT_NEAR(epoch.seconds(), 0.100, 1e-9);
  EXPECT_NEAR(epoch.waits.fetch, 0.030, 1e-9);
  EXPECT_NEAR(epoch.waits.prep, 0.030, 1e-9);
  EXPECT_EQ(story.delivered, 8u);
}

TEST(RunStoryTest, TheLimitIsWhoeverNextWaitedFor) {
  EXPECT_EQ((Waits{.fetch = 3, .prep = 1}.limit(10)), Limit::kFetch);
  EXPECT_EQ((Waits{.fetch = 1, .prep = 3}.limit(10)), Limit::kPrep);
  EXPECT_EQ((Waits{.fetch = 0.2, .prep = 0.2}.limit(10)), Limit::kConsumer);
  EXPECT_EQ(Waits{}.limit(0), Limit::kConsumer);
}

TEST(RunStoryTest, WindowsSayWhatLimitedWhen) {
  // 100 ms: the first 40 wait for bytes, 40 to 60 nothing, 60 to 90 prep, then nothing.
  const std::vector<Event> events{open_event(8, 4),
                                  waited(40ms, 0, 0, 40, 0),
                                  waited(90ms, 0, 1, 0, 30),
                                  {.time = 100ms, .kind = EventKind::kEpochEnd}};
  const RunStory story = story_of(events, {.windows = 10});
  std::string limits;
  for (const StoryWindow& window : story.windows) limits += limit_name(window.waits.limit(story.window_seconds))[0];
  EXPECT_EQ(limits, "ffffccpppc");
  EXPECT_NEAR(story.windows[3].waits.fetch, 0.010, 1e-9);
}

TEST(RunStoryTest, BytesCountForTheEpochThatAskedFirst) {
  const std::vector<Event> events{
      open_event(8, 4),
      sample(EventKind::kAsked, 1ms, 0, 0, 1, 100),
      sample(EventKind::kJoined, 2ms, 1, 0, 1, 100),  // the same bytes on their way, for the next epoch
      read_done(3ms, 1, 100, 2ms),
      sample(EventKind::kHit, 4ms, 1, 1, 1, 100),
      {.time = 5ms, .kind = EventKind::kAsked, .position = 77, .a = 2, .b = 50, .c = 1 << 8},  // a fill
      sample(EventKind::kJoined, 6ms, 1, 2, 2, 50),                                            // the fill is for it
      read_done(7ms, 2, 50, 1ms, Origin::kDisk, true),
      read_done(8ms, 3, 25, 1ms, Origin::kSource, true),  // nobody needs it yet
  };
  const RunStory story = story_of(events);
  ASSERT_EQ(story.epochs.size(), 2u);
  EXPECT_EQ(story.epochs[0].read_bytes[0], 100u);
  EXPECT_EQ(story.epochs[0].memory_bytes, 0u);
  EXPECT_EQ(story.epochs[1].memory_bytes, 200u);
  EXPECT_EQ(story.epochs[1].read_bytes[1], 50u);
  EXPECT_EQ(story.epochs[1].read_bytes[0], 25u);
  EXPECT_EQ(story.reads[0].fills, 1u);
}

TEST(RunStoryTest, TheSlowestComeFirstAndEachOnce) {
  std::vector<Event> events{open_event(100, 4)};
  for (int i = 1; i <= 50; ++i) {
    events.push_back(read_done(Time(i * kMs), static_cast<SampleId>(i % 10), 10, std::chrono::milliseconds(i)));
    events.push_back(prep_done(Time(i * kMs), static_cast<SampleId>(i), std::chrono::microseconds(1000 - i)));
  }
  const RunStory story = story_of(events, {.slowest = 3});
  ASSERT_EQ(story.slow_reads.size(), 3u);
  EXPECT_EQ(story.slow_reads[0].id, 0u);  // 50 ms
  EXPECT_EQ(story.slow_reads[0].took, Duration(50ms));
  EXPECT_EQ(story.slow_reads[1].id, 9u);
  EXPECT_EQ(story.slow_reads[2].id, 8u);
  ASSERT_EQ(story.slow_preps.size(), 3u);
  EXPECT_EQ(story.slow_preps[0].id, 1u);
}

TEST(RunStoryTest, DepthsStandUntilTheyChange) {
  const auto depth = [](Time at, std::uint64_t value) {
    return Event{.time = at, .kind = EventKind::kDepth, .a = value};
  };
  const std::vector<Event> events{
      open_event(8, 4), depth(15ms, 8), depth(55ms, 16), {.time = 100ms, .kind = EventKind::kEpochEnd}};
  const RunStory story = story_of(events, {.windows = 10});
  EXPECT_FALSE(story.windows[0].depth[0]);
  EXPECT_EQ(story.windows[1].depth[0], 8u);
  EXPECT_EQ(story.windows[4].depth[0], 8u);
  EXPECT_EQ(story.windows[5].depth[0], 16u);
  EXPECT_EQ(story.windows[9].depth[0], 16u);
}

TEST(RunStoryTest, StepsHaveTheirMissesByPosition) {
  const std::vector<Event> events{open_event(16, 8, 2, 1),
                                  sample(EventKind::kHit, 1ms, 0, 4, 1, 10),
                                  sample(EventKind::kAsked, 1ms, 0, 5, 2, 20),
                                  sample(EventKind::kAsked, 1ms, 0, 12, 3, 40),
                                  waited(5ms, 0, 0, 1, 0),
                                  waited(9ms, 0, 1, 0, 2)};
  const RunStory story = story_of(events, {.steps = true});
  EXPECT_EQ(story.rank, 1u);
  ASSERT_EQ(story.steps.size(), 2u);
  EXPECT_EQ(story.steps[0].samples, 2u);
  EXPECT_EQ(story.steps[0].misses, 1u);
  EXPECT_EQ(story.steps[0].bytes, 30u);
  EXPECT_EQ(story.steps[0].missed_bytes, 20u);
  EXPECT_EQ(story.steps[1].missed_bytes, 40u);
  EXPECT_NEAR(story.steps[1].waits.prep, 0.002, 1e-9);
}

TEST(RunStoryTest, NumbersThatCanNotBeStayInBounds) {
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
  std::vector<Event> events;
  for (std::uint16_t kind = 1; kind <= 36; ++kind) {
    for (const std::int64_t time :
         {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
      events.push_back({Time(time), EventKind(kind), kind, ~0u, kHuge, kHuge, kHuge, kHuge});
    }
  }
  std::ranges::stable_sort(events, {}, &Event::time);
  const RunStory story = story_of(events, {.steps = true});
  EXPECT_GT(story.seconds, 1e10);
  EXPECT_LE(story.waits.total(), story.seconds);
  for (const StoryWindow& window : story.windows) EXPECT_LE(window.waits.total(), story.window_seconds * 1.001);
}

TEST(RunStoryTest, ManyEpochsAreCountedButNotAllListed) {
  std::vector<Event> events{open_event(4, 4)};
  for (std::uint32_t epoch = 0; epoch < 1500; ++epoch)
    events.push_back(waited(Time((epoch + 1) * kMs), epoch, 0, 0, 0));
  const RunStory story = story_of(events);
  EXPECT_EQ(story.epochs.size(), 1000u);
  EXPECT_EQ(story.epochs_left_out, 500u);
  EXPECT_EQ(story.batches, 1500u);
}

TEST(LatenciesTest, QuantilesAreRightToASixteenth) {
  Latencies took;
  EXPECT_EQ(took.quantile(0.5), Duration(0));
  for (int i = 1; i <= 1000; ++i) took.add(std::chrono::microseconds(i));
  EXPECT_NEAR(static_cast<double>(took.quantile(0.5).count()), 500e3, 500e3 / 16);
  EXPECT_NEAR(static_cast<double>(took.quantile(0.99).count()), 990e3, 990e3 / 16);
  EXPECT_EQ(took.longest(), Duration(1ms));
  took.add(Duration(std::numeric_limits<std::int64_t>::max()));
  took.add(Duration(-5));
  EXPECT_EQ(took.quantile(0), Duration(0));
  EXPECT_GE(took.quantile(1), Duration(std::numeric_limits<std::int64_t>::max() / 16 * 15));
}

}  // namespace
}  // namespace foreload
