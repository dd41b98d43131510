#include "policy/pacing.h"

#include <gtest/gtest.h>

#include <queue>

namespace foreload {
namespace {

using namespace std::chrono_literals;

// Storage with a latency per read and one shared bandwidth; reads are always wanted.
struct Storage {
  Duration latency;
  double bytes_per_second;
};

struct Outcome {
  unsigned depth;
  double bytes_per_second;
};

Outcome drive(const Storage& storage, Bytes sample, int reads) {
  Pacer pacer({.max_depth = 128});
  std::priority_queue<Time, std::vector<Time>, std::greater<>> flights;
  Time now{0};
  Time link_free{0};
  Time half{0};
  for (int done = 0; done < reads; ++done) {
    while (pacer.may_start(static_cast<unsigned>(flights.size()))) {
      const auto transfer =
          Duration(static_cast<std::int64_t>(1e9 * static_cast<double>(sample) / storage.bytes_per_second));
      link_free = std::max(now, link_free) + transfer;
      flights.push(link_free + storage.latency);
    }
    now = flights.top();
    flights.pop();
    pacer.on_read_done(now, sample, static_cast<unsigned>(flights.size()));
    if (done == reads / 2) half = now;
  }
  const double second_half = static_cast<double>(sample) * reads / 2;
  return {pacer.depth(), second_half / std::chrono::duration<double>(now - half).count()};
}

TEST(PacerTest, DepthGrowsUntilLatencyIsHidden) {
  const Outcome outcome = drive({.latency = 5ms, .bytes_per_second = 1e9}, 100'000, 50'000);
  EXPECT_GE(outcome.bytes_per_second, 0.9e9);
  EXPECT_GE(outcome.depth, 32u);
}

TEST(PacerTest, DepthStaysSmallWhenMoreBringsNothing) {
  const Outcome outcome = drive({.latency = 0ms, .bytes_per_second = 1e8}, 100'000, 5'000);
  EXPECT_LE(outcome.depth, 16u);
  EXPECT_GE(outcome.bytes_per_second, 0.95e8);
}

TEST(PacerTest, DepthNeverExceedsItsBound) {
  const Outcome outcome = drive({.latency = 500ms, .bytes_per_second = 1e12}, 100'000, 50'000);
  EXPECT_LE(outcome.depth, 128u);
}

TEST(PacerTest, SmallBatchesAreStillReadFarAhead) {
  const Pacer pacer({.max_depth = 16, .batch = 1});
  EXPECT_GE(pacer.lookahead_batches(), 256u);
  const Pacer large({.max_depth = 16, .batch = 512});
  EXPECT_EQ(large.lookahead_batches(), 1u);
}

TEST(PacerTest, TheSameEventsGiveTheSameDecisions) {
  Pacer a({.max_depth = 64});
  Pacer b({.max_depth = 64});
  for (int i = 0; i < 10'000; ++i) {
    const Time now = 1ms * i;
    EXPECT_EQ(a.on_read_done(now, 50'000, 7), b.on_read_done(now, 50'000, 7));
    ASSERT_EQ(a.depth(), b.depth());
  }
}

}  // namespace
}  // namespace foreload
