#include "policy/pacing.h"

#include <gtest/gtest.h>

#include <queue>
#include <utility>

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
  bool part_pays;  // a third of a sample instead of all of it
};

Outcome drive(const Storage& storage, Bytes sample, int reads) {
  Pacer pacer({.max_depth = 128});
  std::priority_queue<Time, std::vector<Time>, std::greater<>> flights;
  Time now{0};
  Time link_free{0};
  Time half{0};
  for (int done = 0; done < reads; ++done) {
    while (pacer.may_start(Origin::kSource, static_cast<unsigned>(flights.size()))) {
      const auto transfer =
          Duration(static_cast<std::int64_t>(1e9 * static_cast<double>(sample) / storage.bytes_per_second));
      link_free = std::max(now, link_free) + transfer;
      flights.push(link_free + storage.latency);
    }
    now = flights.top();
    flights.pop();
    pacer.on_read_done(now, {.bytes = sample, .in_flight = static_cast<unsigned>(flights.size())});
    if (done == reads / 2) half = now;
  }
  const double second_half = static_cast<double>(sample) * reads / 2;
  return {pacer.depth(Origin::kSource), second_half / std::chrono::duration<double>(now - half).count(),
          pacer.parts_may_pay() && pacer.part_pays(Origin::kSource, sample, sample / 3)};
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

TEST(PacerTest, QuickStorageIsReadWholeAndSlowStorageInParts) {
  EXPECT_FALSE(drive({.latency = 0ms, .bytes_per_second = 2e9}, 100'000, 5'000).part_pays);
  EXPECT_TRUE(drive({.latency = 0ms, .bytes_per_second = 2e7}, 100'000, 5'000).part_pays);
}

// A network of that rate, from which enough was read.
bool cut_pays(double bytes_per_second, Bytes whole, Bytes part) {
  Pacer pacer({.max_depth = 16});
  Time now{0};
  for (int i = 0; i < 5'000; ++i) {
    now += Duration(static_cast<std::int64_t>(1e9 * 100'000 / bytes_per_second));
    (void)pacer.on_read_done(now, {.origin = Origin::kPeer, .asked = Origin::kPeer, .bytes = 100'000, .in_flight = 4});
  }
  return pacer.part_pays(Origin::kPeer, whole, part);
}

TEST(PacerTest, CropsAreCutOutElsewhereUnlessTheNetworkIsQuickerThanThat) {
  const Pacer fresh({.max_depth = 16});
  EXPECT_TRUE(fresh.part_pays(Origin::kPeer, 110'000, 55'000)) << "before anything is known of the network";
  EXPECT_FALSE(fresh.part_pays(Origin::kPeer, 110'000, 100'000)) << "hardly anything is saved";
  EXPECT_FALSE(fresh.part_pays(Origin::kSource, 110'000, 55'000)) << "storage must have been seen to be slow";
  for (const double slow : {1e7, 1.25e8, 6e8}) EXPECT_TRUE(cut_pays(slow, 110'000, 55'000)) << slow;
  for (const double quick : {2e9, 1.2e10}) EXPECT_FALSE(cut_pays(quick, 110'000, 55'000)) << quick;
  EXPECT_TRUE(cut_pays(6e8, 1'100'000, 550'000)) << "whatever the length";
  EXPECT_FALSE(cut_pays(6e8, 110'000, 90'000)) << "less is saved than the cutting costs";
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
    const ReadEnd read{.bytes = 50'000, .in_flight = 7};
    EXPECT_EQ(a.on_read_done(now, read), b.on_read_done(now, read));
    ASSERT_EQ(a.depth(Origin::kSource), b.depth(Origin::kSource));
  }
}

TEST(PacerTest, OriginsHaveDepthsOfTheirOwn) {
  Pacer pacer({.max_depth = 128});
  // The source becomes quicker with every read more, the disk does not.
  Time now{0};
  for (int i = 0; i < 20'000; ++i) {
    now += Duration(1'000'000 / pacer.depth(Origin::kSource));
    pacer.on_read_done(now, {.origin = Origin::kSource, .bytes = 1000, .in_flight = 127});
    if (i % 10 == 0) pacer.on_read_done(now, {.origin = Origin::kDisk, .asked = Origin::kDisk, .bytes = 1000});
  }
  EXPECT_GE(pacer.depth(Origin::kSource), 64u);
  EXPECT_EQ(pacer.depth(Origin::kDisk), 16u);
}

TEST(PacerTest, RequestsOfAnObjectStoreArePacedByTheirWindow) {
  const Pacer pacer({.max_depth = 128, .objects = true});
  EXPECT_EQ(pacer.depth(Origin::kSource), 128u);
  EXPECT_LT(pacer.depth(Origin::kDisk), 128u);
}

TEST(PacerTest, NobodyFillsWhileAReadOfTheStreamWaits) {
  const Pacer pacer({.max_depth = 128});
  EXPECT_TRUE(pacer.may_fill(Origin::kSource, 15, 0));
  EXPECT_FALSE(pacer.may_fill(Origin::kSource, 15, 1));
  EXPECT_FALSE(pacer.may_fill(Origin::kSource, 16, 0));
}

// A pacer that knows both origins: the disk brings `disk` bytes per second, the source `source`.
Pacer experienced(double disk, double source) {
  Pacer pacer({.max_depth = 8, .slots = 1});
  for (const auto& [origin, rate] : {std::pair(Origin::kDisk, disk), std::pair(Origin::kSource, source)}) {
    Time now{0};
    for (int i = 0; i < 1000; ++i) {
      const Bytes bytes = 100'000;
      now += Duration(static_cast<std::int64_t>(1e9 * static_cast<double>(bytes) / rate));
      pacer.on_read_done(now, {.origin = origin, .asked = origin, .bytes = bytes, .took = 1ms, .in_flight = 7});
    }
  }
  return pacer;
}

TEST(PacerTest, TheDiskIsLeftOnlyWhenItIsLateAndTheSourceMuchQuicker) {
  Pacer slow_disk = experienced(1e7, 1e9);
  slow_disk.on_asked(Origin::kDisk, 10'000'000);  // a second of work
  EXPECT_EQ(slow_disk.route(Time{500ms}, Origin::kDisk, 100'000, 0), Origin::kSource);
  slow_disk.on_slot_opened(Time{0});
  slow_disk.on_slot_opened(500ms);
  EXPECT_EQ(slow_disk.pace().step, 500ms);
  EXPECT_EQ(slow_disk.route(Time{500ms}, Origin::kDisk, 100'000, 4), Origin::kDisk) << "it comes in time";
  EXPECT_EQ(slow_disk.route(Time{500ms}, Origin::kDisk, 100'000, 1), Origin::kSource);

  Pacer few = experienced(1e7, 1e9);
  few.on_asked(Origin::kDisk, 2'000'000);
  EXPECT_EQ(few.route(Time{500ms}, Origin::kDisk, 100'000, 0), Origin::kDisk)
      << "it is not worth it for a fifth of a second";

  Pacer alike = experienced(1e8, 2e8);
  alike.on_asked(Origin::kDisk, 100'000);
  EXPECT_EQ(alike.route(Time{0}, Origin::kDisk, 100'000, 0), Origin::kDisk);
  alike.on_asked(Origin::kDisk, 100'000'000);
  EXPECT_EQ(alike.route(Time{0}, Origin::kDisk, 100'000, 0), Origin::kDisk) << "however many wait";
  EXPECT_EQ(Pacer({}).route(Time{0}, Origin::kDisk, 100'000, 0), Origin::kDisk) << "nothing is known";
}

TEST(PacerTest, WhatTheDiskLostStillLeavesItsQueue) {
  Pacer pacer = experienced(1e7, 1e9);
  pacer.on_asked(Origin::kDisk, 10'000'000);
  pacer.on_read_done(Time{20s}, {.origin = Origin::kSource, .asked = Origin::kDisk, .bytes = 10'000'000, .took = 1ms});
  EXPECT_EQ(pacer.route(Time{20s}, Origin::kDisk, 1'000, 0), Origin::kDisk);
}

}  // namespace
}  // namespace foreload
