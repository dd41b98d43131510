#include "foreload/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iostream>
#include <iterator>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "plan/test_statistics.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSmallSizes[] = {2, 3, 4, 5, 7, 9, 16, 25, 31, 64, 100, 257};
constexpr std::uint64_t kLargeSizes[] = {1000, 4096, 10'007, 65'536, 1'000'000};

std::vector<std::uint64_t> all_sizes() {
  std::vector<std::uint64_t> sizes(std::begin(kSmallSizes), std::end(kSmallSizes));
  sizes.insert(sizes.end(), std::begin(kLargeSizes), std::end(kLargeSizes));
  return sizes;
}

Schedule schedule_of(std::uint64_t samples, std::uint64_t seed) {
  return Schedule({.samples = samples, .seed = seed});
}

std::vector<SampleId> order(const Schedule& schedule, Epoch epoch) {
  std::vector<SampleId> ids(schedule.size());
  for (Position p = 0; p < ids.size(); ++p) ids[p] = schedule.sample_at(epoch, p);
  return ids;
}

// Numbers the N! orders from 0.
std::uint64_t rank_of(const std::vector<SampleId>& ids) {
  std::uint64_t rank = 0;
  for (auto it = ids.begin(); it != ids.end(); ++it) {
    const auto smaller = std::count_if(it, ids.end(), [&](SampleId id) { return id < *it; });
    rank = rank * static_cast<std::uint64_t>(ids.end() - it) + static_cast<std::uint64_t>(smaller);
  }
  return rank;
}

bool is_odd(const std::vector<SampleId>& ids) {
  std::vector<bool> seen(ids.size());
  bool odd = false;
  for (std::size_t start = 0; start < ids.size(); ++start) {
    if (seen[start]) continue;
    for (std::size_t i = ids[start]; i != start; i = ids[i]) {
      seen[i] = true;
      odd = !odd;
    }
  }
  return odd;
}

std::uint64_t factorial(std::uint64_t n) {
  return n < 2 ? 1 : n * factorial(n - 1);
}

std::string text(const char* what, std::uint64_t samples, std::uint64_t detail = 0) {
  return "N = " + std::to_string(samples) + ", " + what + " " + std::to_string(detail);
}

TEST(ScheduleTest, EveryEpochHoldsEverySampleOnce) {
  std::vector<std::uint64_t> sizes(300);
  std::iota(sizes.begin(), sizes.end(), 1);
  sizes.insert(sizes.end(), std::begin(kLargeSizes), std::end(kLargeSizes));
  for (const std::uint64_t samples : sizes) {
    std::vector<SampleId> ids = order(schedule_of(samples, samples), samples % 7);
    std::sort(ids.begin(), ids.end());
    for (SampleId id = 0; id < samples; ++id) ASSERT_EQ(ids[id], id) << text("sorted", samples);
  }
}

TEST(ScheduleTest, PositionOfIsTheInverseOfSampleAt) {
  std::vector<std::uint64_t> sizes = all_sizes();
  sizes.insert(sizes.end(), {1, (1ULL << 32) - 1, (1ULL << 32) + 1, 1ULL << 63, (1ULL << 63) + 1, ~0ULL});
  for (const std::uint64_t samples : sizes) {
    const std::uint64_t steps = std::min<std::uint64_t>(samples, 500);
    for (std::uint64_t i = 0; i < steps; ++i) {
      const Position position = samples - 1 - samples / steps * i;
      const SampleId id = schedule_of(samples, 11).sample_at(5, position);
      ASSERT_LT(id, samples);
      ASSERT_EQ(schedule_of(samples, 11).position_of(5, id), position) << text("position", samples, position);
    }
  }
}

TEST(ScheduleTest, WithoutShuffleThePositionIsTheId) {
  const Schedule schedule({.samples = 1000, .seed = 3, .shuffle = false});
  for (Position p = 0; p < 1000; ++p) {
    ASSERT_EQ(schedule.sample_at(p % 5, p), p);
    ASSERT_EQ(schedule.position_of(p % 5, p), p);
  }
}

TEST(ScheduleTest, OneSampleIsAlwaysFirst) {
  for (Epoch epoch = 0; epoch < 100; ++epoch) {
    EXPECT_EQ(schedule_of(1, 9).sample_at(epoch, 0), 0U);
    EXPECT_EQ(schedule_of(1, 9).position_of(epoch, 0), 0U);
    EXPECT_EQ(schedule_of(1, 9).substitute(epoch, 0, 1), 0U);
  }
}

TEST(ScheduleTest, AnEmptySetHasNoPositions) {
  const Schedule empty = schedule_of(0, 1);
  EXPECT_EQ(empty.size(), 0U);
  EXPECT_DEATH((void)empty.sample_at(0, 0), "positions of an epoch");
  EXPECT_DEATH((void)empty.position_of(0, 0), "sample ids");
  EXPECT_DEATH((void)empty.substitute(0, 0, 1), "empty dataset");
}

// Written down once: another order would break the resume of every state that was ever saved.
TEST(ScheduleTest, TheOrderIsTheSameInEveryRelease) {
  struct Golden {
    std::uint64_t samples, seed, epoch;
    std::array<SampleId, 8> ids;  // at positions 0 … 7
  };
  const Golden golden[] = {
      {2, 0, 0, {0, 1}},
      {5, 0, 0, {3, 2, 0, 1, 4}},
      {7, 1, 1, {0, 6, 5, 2, 3, 4, 1}},
      {10, 1, 0, {5, 4, 8, 3, 1, 9, 7, 6}},
      {100, 7, 0, {99, 27, 86, 65, 7, 15, 87, 12}},
      {1000, 7, 3, {355, 719, 45, 587, 395, 886, 528, 941}},
      {50000, 42, 89, {3411, 941, 13564, 4692, 545, 17235, 2777, 38527}},
      {1281167, 0, 0, {1007249, 1096025, 842306, 1007617, 1091013, 580970, 72695, 101335}},
      {1281167, 7, 0, {1030788, 936095, 227645, 879459, 538725, 920423, 145086, 560990}},
      {1281167, 7, 1, {1179893, 293740, 570925, 473580, 333974, 459556, 1263612, 507293}},
      {1281167, ~0ULL, ~0ULL, {324850, 400486, 995720, 1087790, 798664, 655542, 864329, 229819}},
      {1'000'000'000'000,
       7,
       2,
       {96730763832, 40048740863, 684002121719, 318598395456, 522056598632, 380020637222, 512814668025, 399283856218}},
      {~0ULL,
       7,
       2,
       {15421774840159866139ULL, 6205622054404488478, 7318010649900269393, 16964698058499956965ULL,
        14138741971690849267ULL, 665665699566248722, 1087715654865478382, 7906005598899587971}},
  };
  for (const Golden& g : golden) {
    for (Position p = 0; p < std::min<std::uint64_t>(g.ids.size(), g.samples); ++p) {
      EXPECT_EQ(schedule_of(g.samples, g.seed).sample_at(g.epoch, p), g.ids[p]) << text("position", g.samples, p);
    }
  }
}

TEST(ScheduleTest, ManyPositionsAtOnceAreThoseOneByOne) {
  std::mt19937_64 random(fresh_seed());
  const auto weights = std::make_shared<const WeightTable>(*WeightTable::create(std::vector<double>(40, 1)));
  for (const ScheduleOptions& options :
       {ScheduleOptions{.samples = 1, .seed = 3}, ScheduleOptions{.samples = 5, .seed = 3},
        ScheduleOptions{.samples = 1025, .seed = random()}, ScheduleOptions{.samples = 1'281'167, .seed = random()},
        ScheduleOptions{.samples = 70, .shuffle = false}, ScheduleOptions{.samples = 40, .weights = weights},
        ScheduleOptions{.samples = 90, .echo = 2, .echo_window = 7}}) {
    const Schedule schedule(options);
    for (int trial = 0; trial < 200; ++trial) {
      const Position first = random() % (schedule.size() + 1);
      std::vector<SampleId> ids(random() % (std::min<std::uint64_t>(schedule.size() - first, 50) + 1));
      schedule.samples_at(trial, first, ids);
      for (std::size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], schedule.sample_at(trial, first + i));
    }
  }
}

TEST(ScheduleTest, SubstitutesAreTheSameInEveryRelease) {
  const Schedule schedule = schedule_of(1'281'167, 7);
  EXPECT_EQ(schedule.substitute(0, 0, 1), 369452U);
  EXPECT_EQ(schedule.substitute(0, 0, 2), 1224051U);
  EXPECT_EQ(schedule.substitute(1, 0, 1), 1200336U);
  EXPECT_EQ(schedule.substitute(89, 1281166, 1), 848988U);
  EXPECT_EQ(schedule.substitute(3, 1281168, 1000), 326289U);
}

TEST(ScheduleTest, OfAFewSamplesAllOrdersAreEquallyLikely) {
  for (const std::uint64_t samples : {2, 3, 4, 5, 6, 7}) {
    const std::uint64_t trials = factorial(samples) * (samples == 7 ? 12 : 60) * (soak() ? 20 : 1);
    Tally over_seeds(factorial(samples), 5040);
    Tally over_epochs(factorial(samples), 5040);
    for (std::uint64_t i = 0; i < trials; ++i) {
      over_seeds.add(rank_of(order(schedule_of(samples, i), 0)));
      over_epochs.add(rank_of(order(schedule_of(samples, 1), i)));
    }
    expect_plausible(over_seeds.chance(), text("order in epoch 0 over seeds", samples));
    expect_plausible(over_epochs.chance(), text("order over epochs", samples));
  }
}

TEST(ScheduleTest, EvenAndOddOrdersAreEquallyLikely) {
  const std::uint64_t trials = soak() ? 20'001 : 1'001;  // odd: halves are never exact
  for (const std::uint64_t samples : {2, 3, 4, 8, 9, 12, 15, 16, 25, 32, 49, 64, 81, 256}) {
    Tally parity(2);
    for (Epoch epoch = 0; epoch < trials; ++epoch) parity.add(is_odd(order(schedule_of(samples, 5), epoch)) ? 1 : 0);
    expect_plausible(parity.chance(), text("parity", samples));
  }
}

TEST(ScheduleTest, ASampleStandsAnywhereWithEqualChance) {
  for (const std::uint64_t samples : all_sizes()) {
    const std::uint64_t trials = 64 * 50 * (soak() ? 50 : 1) + 1;
    for (const SampleId id : {std::uint64_t{0}, samples / 2, samples - 1}) {
      Tally positions(samples, 64);
      for (std::uint64_t i = 0; i < trials; ++i) positions.add(schedule_of(samples, i / 10).position_of(i % 10, id));
      expect_plausible(positions.chance(), text("position of", samples, id));
    }
  }
}

TEST(ScheduleTest, NeighboursInASmallSetAreAnyPairWithEqualChance) {
  for (const std::uint64_t samples : kSmallSizes) {
    const std::uint64_t pairs = samples * (samples - 1);
    const std::uint64_t trials = std::min<std::uint64_t>(pairs, 4096) * 20 * (soak() ? 50 : 1);
    for (const Position first : {std::uint64_t{0}, samples / 2 - 1}) {
      Tally tally(pairs);
      for (std::uint64_t seed = 0; seed < trials; ++seed) {
        const SampleId a = schedule_of(samples, seed).sample_at(2, first);
        const SampleId b = schedule_of(samples, seed).sample_at(2, first + 1);
        tally.add(a * (samples - 1) + b - (b > a ? 1 : 0));
      }
      expect_plausible(tally.chance(), text("neighbours at", samples, first));
    }
  }
}

// Inside one epoch, for neighbours and for the distances at which the network's inputs share a half.
TEST(ScheduleTest, NeighboursInALargeSetAreUnrelated) {
  for (const std::uint64_t samples : kLargeSizes) {
    for (const std::uint64_t lag : {1U, 2U, 16U, 32U, 64U, 128U, 256U, 512U, 2048U}) {
      if (lag >= samples) continue;
      const std::vector<SampleId> ids = order(schedule_of(samples, lag), 1);
      const std::span<const SampleId> all(ids);
      Tally differences(samples - 1, 100);
      for (Position p = 0; p + lag < samples; ++p) differences.add((ids[p + lag] + samples - ids[p]) % samples - 1);
      expect_plausible(differences.chance(), text("differences at distance", samples, lag));
      expect_plausible(chance_unrelated(all.first(samples - lag), all.subspan(lag), samples),
                       text("samples at distance", samples, lag));
    }
  }
}

TEST(ScheduleTest, ConsecutiveEpochsAndSeedsOfASmallSetAreUnrelated) {
  for (const std::uint64_t samples : kSmallSizes) {
    const std::uint64_t trials = std::min<std::uint64_t>(samples * samples, 4096) * 20 * (soak() ? 50 : 1);
    Tally epochs(samples * samples);
    Tally seeds(samples * samples);
    for (std::uint64_t i = 0; i < trials; ++i) {
      const SampleId id = i % samples;
      const Position here = schedule_of(samples, i).position_of(3, id);
      epochs.add(here * samples + schedule_of(samples, i).position_of(4, id));
      seeds.add(here * samples + schedule_of(samples, i + 1).position_of(3, id));
    }
    expect_plausible(epochs.chance(), text("positions in epochs 3 and 4", samples));
    expect_plausible(seeds.chance(), text("positions for two seeds", samples));
  }
}

TEST(ScheduleTest, ConsecutiveEpochsAndSeedsOfALargeSetAreUnrelated) {
  for (const std::uint64_t samples : kLargeSizes) {
    const std::vector<SampleId> here = order(schedule_of(samples, 1), 0);
    const std::vector<SampleId> others[] = {order(schedule_of(samples, 1), 1), order(schedule_of(samples, 1), 1U << 16),
                                            order(schedule_of(samples, 2), 0), order(schedule_of(samples, 0), 1)};
    for (std::size_t i = 0; i < std::size(others); ++i) {
      Tally differences(samples, 100);
      for (Position p = 0; p < samples; ++p) differences.add((others[i][p] + samples - here[p]) % samples);
      expect_plausible(differences.chance(), text("differences to order", samples, i));
      expect_plausible(chance_unrelated(here, others[i], samples), text("samples against order", samples, i));
    }
  }
}

TEST(ScheduleTest, ASubstituteIsAnySampleWithEqualChance) {
  const Schedule schedule = schedule_of(100, 4);
  Tally over_positions(100);
  Tally over_k(100);
  Tally pairs(10'000);
  for (std::uint64_t i = 1; i <= 40'000; ++i) {
    over_positions.add(schedule.substitute(2, i, 1));  // beyond the set's size too: padded positions
    over_k.add(schedule.substitute(2, 50, static_cast<unsigned>(i)));
    pairs.add(schedule.substitute(2, i, 1) * 100 + schedule.substitute(2, i, 2));
  }
  expect_plausible(over_positions.chance(), "substitutes over positions");
  expect_plausible(over_k.chance(), "substitutes over k");
  expect_plausible(pairs.chance(), "first and second substitute");
}

// Processor time, so that the neighbours' load does not count. Not under sanitizers, hence only when asked for.
TEST(ScheduleTest, ALookupTakesAtMost150Nanoseconds) {
  if (!soak()) GTEST_SKIP() << "a measurement: set FORELOAD_SOAK=1";
  const Schedule schedule = schedule_of(1'281'167, 7);
  const std::clock_t start = std::clock();
  SampleId id = 0;
  for (int i = 0; i < 2'000'000; ++i) id = schedule.sample_at(3, id);
  const double forward = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / 2e6 * 1e9;
  const std::clock_t middle = std::clock();
  for (int i = 0; i < 2'000'000; ++i) id = schedule.position_of(3, id);
  const double backward = static_cast<double>(std::clock() - middle) / CLOCKS_PER_SEC / 2e6 * 1e9;
  EXPECT_EQ(id, 0U);
  std::cout << "sample_at " << forward << " ns, position_of " << backward << " ns\n";
  EXPECT_LE(forward, 150);
  EXPECT_LE(backward, 150);
}

}  // namespace
}  // namespace foreload
