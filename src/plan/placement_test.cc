#include "plan/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <iostream>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "foreload/schedule.h"
#include "plan/stream.h"
#include "plan/test_statistics.h"
#include "plan/use_counts.h"

namespace foreload {
namespace {

using Sizes = std::vector<Bytes>;

Placement plan(const Sizes& sizes, Bytes capacity, std::uint64_t seed = 7) {
  return Placement::plan(sizes.size(), capacity, seed, [&](SampleId id) { return sizes[id]; });
}

Bytes sum(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), Bytes{0});
}

// Mean about 110 KB with a long tail, as ImageNet's files have.
Sizes image_sizes(std::uint64_t samples) {
  std::mt19937_64 random(1);
  Sizes sizes(samples);
  for (Bytes& size : sizes) {
    size = 1'000 + random() % 60'000 + random() % 60'000 + random() % 60'000;
    if (random() % 16 == 0) size += random() % 300'000;
    if (random() % 4096 == 0) size += random() % 10'000'000;
  }
  return sizes;
}

std::vector<SampleId> homes_of(const Placement& placement, std::uint64_t samples) {
  std::vector<SampleId> homes;
  for (SampleId id = 0; id < samples; ++id) {
    if (placement.is_home(id)) homes.push_back(id);
  }
  return homes;
}

// Sizes of every kind: equal, mixed, mostly too large, many that can not be cached.
Sizes random_sizes(std::mt19937_64& random) {
  Sizes sizes(random() % 3'000);
  const Bytes largest = Bytes{1} << random() % 30;
  const bool has_gaps = random() % 2 == 0;
  for (Bytes& size : sizes) size = has_gaps && random() % 3 == 0 ? 0 : 1 + random() % largest;
  return sizes;
}

// What a plan keeps at least: all that fits alone, or the capacity less what counts as full, or less one sample
// that did not fit any more.
Bytes least_kept(const Sizes& sizes, Bytes capacity) {
  Bytes fitting = 0;
  Bytes unused = capacity / 4096;
  for (const Bytes size : sizes) {
    if (size > capacity) continue;
    fitting += size;
    unused = std::max(unused, size);
  }
  return std::min(fitting, capacity - unused);
}

TEST(PlacementTest, HomesFitInTheCapacityAndFillIt) {
  std::mt19937_64 random(fresh_seed());
  for (int trial = 0; trial < (soak() ? 20'000 : 500) && !testing::Test::HasFailure(); ++trial) {
    SCOPED_TRACE(trial);
    const Sizes sizes = random_sizes(random);
    const Bytes capacity = random() % (sum(sizes) + sum(sizes) / 4 + 2);
    const Placement placement = plan(sizes, capacity, random());
    Bytes bytes = 0;
    const std::vector<SampleId> homes = homes_of(placement, sizes.size());
    for (const SampleId id : homes) {
      EXPECT_GT(sizes[id], 0U);
      bytes += sizes[id];
    }
    EXPECT_EQ(placement.bytes(), bytes);
    EXPECT_EQ(placement.homes(), homes.size());
    EXPECT_LE(bytes, capacity);
    EXPECT_GE(bytes, least_kept(sizes, capacity));
  }
}

TEST(PlacementTest, MoreCapacityNeverKeepsMuchLess) {
  const Sizes sizes = image_sizes(2'000);
  const Bytes largest = *std::max_element(sizes.begin(), sizes.end());
  Bytes smaller = 0;
  for (Bytes capacity = 1; capacity < 2 * sum(sizes); capacity += capacity / 64 + 1) {
    const Bytes larger = plan(sizes, capacity).bytes();
    ASSERT_GE(larger + std::max(largest, capacity / 4096), smaller) << "capacity " << capacity;
    smaller = larger;
  }
}

TEST(PlacementTest, EverySampleHasAHomeIfAllFitExactly) {
  const Sizes sizes = image_sizes(20'000);
  const Placement exact = plan(sizes, sum(sizes));
  EXPECT_EQ(exact.homes(), sizes.size());
  EXPECT_EQ(exact.bytes(), sum(sizes));
  EXPECT_EQ(plan(sizes, ~Bytes{0}).homes(), sizes.size());
  EXPECT_LT(plan(sizes, sum(sizes) - 1).homes(), sizes.size());
}

TEST(PlacementTest, WhatCanNotBeCachedHasNoHomeAndStopsNoOther) {
  const Sizes sizes = {5, 0, 1'000'000, 5, 0, 5};
  const Placement placement = plan(sizes, 15);
  EXPECT_EQ(homes_of(placement, 6), (std::vector<SampleId>{0, 3, 5}));
  EXPECT_EQ(placement.bytes(), 15U);
}

TEST(PlacementTest, NothingHasAHomeWithoutCapacityOrSamples) {
  EXPECT_FALSE(Placement().is_home(0));
  EXPECT_EQ(Placement().bytes(), 0U);
  EXPECT_EQ(plan({}, 1000).homes(), 0U);
  EXPECT_EQ(plan({1, 2, 3}, 0).homes(), 0U);
  EXPECT_EQ(plan({1, 2, 3}, 0).bytes(), 0U);
  EXPECT_EQ(plan({10, 20, 30}, 9).homes(), 0U);
}

TEST(PlacementTest, SizesWhoseSumOverflowsAreNotTakenForFitting) {
  const Sizes sizes(4, Bytes{1} << 63);
  EXPECT_EQ(plan(sizes, ~Bytes{0}).homes(), 1U);
}

TEST(PlacementTest, ThePlanDependsOnTheSeedAlone) {
  const Sizes sizes = image_sizes(10'000);
  const std::vector<SampleId> homes = homes_of(plan(sizes, sum(sizes) / 2, 1), sizes.size());
  EXPECT_EQ(homes, homes_of(plan(sizes, sum(sizes) / 2, 1), sizes.size()));
  const std::vector<SampleId> others = homes_of(plan(sizes, sum(sizes) / 2, 2), sizes.size());
  std::vector<SampleId> both;
  std::set_intersection(homes.begin(), homes.end(), others.begin(), others.end(), std::back_inserter(both));
  EXPECT_NEAR(static_cast<double>(both.size()), static_cast<double>(homes.size()) / 2,
              0.03 * static_cast<double>(homes.size()));
}

TEST(PlacementTest, PhotographsFillTheCapacity) {
  const Sizes sizes = image_sizes(100'000);
  for (const unsigned percent : {1, 5, 25, 50, 75, 99}) {
    const Bytes capacity = sum(sizes) / 100 * percent;
    const Placement placement = plan(sizes, capacity);
    EXPECT_GE(placement.bytes(), capacity - capacity / 100) << percent;
    const double mean = static_cast<double>(placement.bytes()) / static_cast<double>(placement.homes());
    EXPECT_NEAR(mean, static_cast<double>(sum(sizes)) / 100'000, 0.05 * mean) << percent << ": no size is favoured";
  }
}

// Hits come evenly: neither the beginning nor the end of an epoch is left to the storage.
TEST(PlacementTest, HomesAreSpreadEvenlyOverEveryEpochAndOverTheSet) {
  const Sizes sizes = image_sizes(100'000);
  for (const unsigned percent : {10, 35, 65, 90}) {
    const Placement placement = plan(sizes, sum(sizes) / 100 * percent);
    const std::vector<SampleId> homes = homes_of(placement, sizes.size());
    const Schedule schedule({.samples = sizes.size(), .seed = 7});
    const double drawn = static_cast<double>(homes.size()) / static_cast<double>(sizes.size());
    Tally over_ids(sizes.size(), 64);
    for (const SampleId id : homes) over_ids.add(id);
    for (const Epoch epoch : {0, 1, 2, 89}) {
      Tally over_epoch(sizes.size(), 64);
      for (const SampleId id : homes) over_epoch.add(schedule.position_of(epoch, id));
      expect_plausible(over_epoch.chance(drawn), std::to_string(percent) + " % in epoch " + std::to_string(epoch));
    }
    expect_plausible(over_ids.chance(drawn), std::to_string(percent) + " % over the ids");
  }
}

// Processor time, so that the neighbours' load does not count. Not under sanitizers, hence only when asked for.
TEST(PlacementTest, AMillionSamplesArePlannedIn300Milliseconds) {
  if (!soak()) GTEST_SKIP() << "a measurement: set FORELOAD_SOAK=1";
  const Sizes sizes = image_sizes(1'281'167);
  for (const unsigned percent : {1, 50, 99, 100}) {
    const Bytes capacity = percent == 100 ? sum(sizes) : sum(sizes) / 100 * percent;
    const std::clock_t start = std::clock();
    const Placement placement = plan(sizes, capacity);
    const double milliseconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC * 1e3;
    std::cout << percent << " % of the set: " << milliseconds << " ms, " << placement.homes() << " homes, filled "
              << static_cast<double>(placement.bytes()) / static_cast<double>(capacity) << '\n';
    EXPECT_LE(milliseconds, 300) << percent;
  }
}

TEST(PlacementTest, BelowATierComeThoseWithoutAHomeFirstAndThenCopies) {
  constexpr std::uint64_t kCount = 1000;
  const auto each = [](SampleId) { return Bytes{10}; };
  const Placement memory = Placement::plan(kCount, 3000, 7, each);
  ASSERT_EQ(memory.homes(), 300u);
  const auto copies = [&](const Placement& disk) {
    std::uint64_t both = 0;
    for (SampleId id = 0; id < kCount; ++id) both += memory.is_home(id) && disk.is_home(id) ? 1 : 0;
    return both;
  };
  const Placement small = Placement::plan_below(memory, kCount, 2000, 7, each);
  EXPECT_EQ(small.homes(), 200u);
  EXPECT_EQ(copies(small), 0u);
  const Placement larger = Placement::plan_below(memory, kCount, 9000, 7, each);
  EXPECT_EQ(larger.homes(), 900u);
  EXPECT_EQ(copies(larger), 200u) << "all others are there";
  const Placement whole = Placement::plan_below(memory, kCount, 10000, 7, each);
  EXPECT_EQ(whole.homes(), kCount);
}

TEST(PlacementTest, MemoryAndDiskTogetherAreWhatOneTierOfBothSizesWouldHold) {
  constexpr std::uint64_t kCount = 5000;
  const auto each = [](SampleId) { return Bytes{10}; };
  const Placement memory = Placement::plan(kCount, 10000, 3, each);
  const Placement disk = Placement::plan_below(memory, kCount, 15000, 3, each);
  const Placement one = Placement::plan(kCount, 25000, 3, each);
  for (SampleId id = 0; id < kCount; ++id) {
    ASSERT_EQ(memory.is_home(id) || disk.is_home(id), one.is_home(id)) << "sample " << id;
  }
}

TEST(PlacementTest, TheMostUsedComeFirstAndEqualsInTheUsualOrder) {
  constexpr std::uint64_t kCount = 3000;
  const auto each = [](SampleId) { return Bytes{10}; };
  std::vector<std::uint16_t> uses(kCount, 4);
  EXPECT_EQ(homes_of(Placement::plan_most_used(uses, 9000, 3, each), kCount),
            homes_of(Placement::plan(kCount, 9000, 3, each), kCount));
  for (SampleId id = 0; id < kCount; ++id) uses[id] = static_cast<std::uint16_t>(id % 10);
  const Placement most_used = Placement::plan_most_used(uses, 9000, 3, each);
  EXPECT_EQ(most_used.homes(), 900u);
  for (SampleId id = 0; id < kCount; ++id) ASSERT_EQ(most_used.is_home(id), uses[id] >= 7) << "sample " << id;
}

TEST(PlacementTest, UsesAreCountedThroughTheRunOfOneLearner) {
  const JobShape shape{.samples = 50, .global_batch = 9, .world = 3};
  const Stream stream(Schedule({.samples = 50, .seed = 2}), SliceAssignment(shape), {.rank = 1, .epochs = 7});
  std::vector<std::uint16_t> expected(50);
  for (std::uint64_t number = 0; stream.has(number); ++number) {
    const BatchPlan batch = stream.batch(number);
    for (std::uint64_t i = 0; i < batch.count; ++i) ++expected[stream.sample(batch, i)];
  }
  EXPECT_EQ(count_uses(stream), expected);
  const Stream endless(stream.schedule(), stream.assignment(), {.rank = 1});
  const auto counted = count_uses(endless);
  EXPECT_EQ(std::accumulate(counted.begin(), counted.end(), 0), 16 * 17) << "51 positions of an epoch, a third of them";
}

}  // namespace
}  // namespace foreload
