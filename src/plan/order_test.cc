// Echo and partial shuffle. The golden values were also computed by an independent implementation with Python's
// integers, which finds homes and places by walking over all positions.
#include "plan/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "foreload/schedule.h"
#include "plan/assignment.h"
#include "plan/test_statistics.h"

namespace foreload {
namespace {

Schedule echo(std::uint64_t samples, std::uint64_t times, std::uint64_t window, bool shuffle = true) {
  return Schedule({.samples = samples, .seed = 7, .shuffle = shuffle, .echo = times, .echo_window = window});
}

ScheduleOptions partial_options(std::uint64_t samples, double share, std::uint64_t homes, std::uint64_t batch) {
  return {.samples = samples, .seed = 42, .reshuffle = share, .homes = homes, .global_batch = batch};
}

Schedule partial(std::uint64_t samples, double share, std::uint64_t homes, std::uint64_t batch) {
  return Schedule(partial_options(samples, share, homes, batch));
}

std::vector<SampleId> order(const Schedule& schedule, Epoch epoch) {
  std::vector<SampleId> ids;
  for (Position p = 0; p < schedule.size(); ++p) ids.push_back(schedule.sample_at(epoch, p));
  return ids;
}

// Which of `homes` ranks would take it: by the assignment itself.
std::uint64_t home_of(Position position, std::uint64_t samples, std::uint64_t homes, std::uint64_t batch) {
  const SliceAssignment slices({.samples = samples,
                                .global_batch = batch,
                                .world = static_cast<std::uint32_t>(homes),
                                .last_batch = LastBatch::kRagged});
  for (std::uint32_t rank = 0; rank < homes; ++rank) {
    const Share share = slices.share(position / batch, rank);
    if (position >= share.first && position < share.first + share.count) return rank;
  }
  ADD_FAILURE() << "position " << position << " has no home";
  return 0;
}

TEST(EchoTest, TheOrderIsTheSameInEveryRelease) {
  EXPECT_EQ(order(echo(10, 3, 4), 1), (std::vector<SampleId>{6, 7, 3, 9, 7, 3, 6, 6, 7, 3, 9, 9, 1, 5, 5,
                                                             1, 5, 2, 8, 2, 8, 1, 2, 8, 4, 0, 0, 4, 0, 4}));
  EXPECT_EQ(order(echo(7, 2, 3, false), 1), (std::vector<SampleId>{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 6}));
  const Schedule large = echo(1'281'167, 4, 256);
  const std::pair<Position, SampleId> golden[] = {{0, 1154860}, {1, 12592},     {2, 734843},
                                                  {3, 235279},  {1024, 282069}, {5124667, 410325}};
  for (const auto& [position, id] : golden) EXPECT_EQ(large.sample_at(2, position), id) << position;
}

TEST(EchoTest, EverySampleComesExactlyThatOftenAndInsideOneBlock) {
  for (const std::uint64_t samples : {1U, 2U, 3U, 7U, 64U, 100U, 257U}) {
    for (const std::uint64_t times : {2U, 3U, 5U}) {
      for (const std::uint64_t window : {1U, 2U, 10U, 64U, 1000U}) {
        for (const bool shuffle : {true, false}) {
          const Schedule schedule = echo(samples, times, window, shuffle);
          ASSERT_EQ(schedule.size(), samples * times);
          EXPECT_FALSE(schedule.is_permutation());
          std::map<SampleId, std::vector<Position>> places;
          for (Position p = 0; p < schedule.size(); ++p) places[schedule.sample_at(3, p)].push_back(p);
          ASSERT_EQ(places.size(), samples);
          for (const auto& [id, at] : places) {
            ASSERT_EQ(at.size(), times) << "sample " << id << " of " << samples << ", window " << window;
            ASSERT_EQ(schedule.block_of(at.front()), schedule.block_of(at.back()));
            ASSERT_LT(at.back() - at.front(), window * times);
          }
        }
      }
    }
  }
}

TEST(EchoTest, RepeatsStandAnywhereInTheirBlock) {
  const Schedule schedule = echo(64, 3, 16);
  Tally repeats(47);
  for (Epoch epoch = 0; epoch < (soak() ? 40'000U : 4'000U); ++epoch) {
    for (Position p = 1; p < 48; ++p) {
      if (schedule.sample_at(epoch, p) == schedule.sample_at(epoch, 0)) repeats.add(p - 1);
    }
  }
  expect_plausible(repeats.chance(), "places of the repeats");
}

TEST(EchoTest, WeightedDrawsCanBeEchoed) {
  auto weights = WeightTable::create(std::vector<double>{1, 2, 3, 4});
  ASSERT_TRUE(weights.ok());
  const Schedule schedule({.samples = 4,
                           .seed = 7,
                           .weights = std::make_shared<const WeightTable>(std::move(*weights)),
                           .epoch_samples = 6,
                           .echo = 2,
                           .echo_window = 4});
  EXPECT_EQ(order(schedule, 0), (std::vector<SampleId>{3, 2, 2, 2, 3, 2, 3, 3, 2, 2, 2, 2}));
}

TEST(PartialShuffleTest, TheOrderIsTheSameInEveryRelease) {
  ScheduleOptions small = partial_options(23, 0.25, 3, 8);
  small.seed = 7;
  EXPECT_EQ(order(Schedule(small), 0),
            (std::vector<SampleId>{21, 3, 0, 19, 17, 12, 22, 1, 18, 13, 8, 14, 7, 20, 6, 4, 5, 10, 11, 2, 16, 9, 15}));
  EXPECT_EQ(order(Schedule(small), 1),
            (std::vector<SampleId>{12, 10, 14, 22, 7, 4, 1, 3, 2, 21, 18, 8, 19, 16, 9, 0, 5, 13, 17, 11, 20, 6, 15}));
  const Position positions[] = {0, 1, 2, 3, 63, 64, 500, 999};
  const SampleId tenth[] = {833, 698, 50, 404, 754, 939, 395, 105};
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(partial(1000, 0.1, 4, 64).sample_at(5, positions[i]), tenth[i]);
    EXPECT_EQ(partial(1000, 0, 4, 64).sample_at(5, positions[i]), i == 3 ? 264U : tenth[i]);
  }
}

TEST(PartialShuffleTest, EverySampleOnceAndTheInverseFindsIt) {
  for (const std::uint64_t samples : {1U, 2U, 3U, 5U, 8U, 23U, 64U, 100U, 257U}) {
    for (const std::uint64_t batch : {1U, 2U, 7U, 8U, 64U, 300U}) {
      for (const std::uint64_t homes : {1U, 2U, 3U, 8U, 17U}) {
        for (const double share : {0.0, 0.001, 0.25, 0.5, 0.999}) {
          const Schedule schedule = partial(samples, share, homes, batch);
          EXPECT_TRUE(schedule.is_permutation());
          std::set<SampleId> seen;
          for (Position p = 0; p < samples; ++p) {
            const SampleId id = schedule.sample_at(2, p);
            ASSERT_LT(id, samples);
            ASSERT_TRUE(seen.insert(id).second) << samples << " samples, batch " << batch << ", homes " << homes;
            ASSERT_EQ(schedule.position_of(2, id), p);
          }
        }
      }
    }
  }
}

TEST(PartialShuffleTest, AHugeSetHasItsInverse) {
  const Schedule schedule = partial((1ULL << 40) + 12345, 0.1, 1000, 65'536);
  for (Position p = 0; p < schedule.size(); p += (1ULL << 31) + 987'654'321) {
    ASSERT_EQ(schedule.position_of(9, schedule.sample_at(9, p)), p);
  }
}

TEST(PartialShuffleTest, NothingDealtMeansThatNoSampleLeavesItsHome) {
  for (const std::uint64_t samples : {5U, 64U, 100U, 257U}) {
    for (const std::uint64_t homes : {1U, 3U, 8U}) {
      std::map<SampleId, std::uint64_t> home;
      for (Epoch epoch = 0; epoch < 5; ++epoch) {
        const std::vector<SampleId> ids = order(partial(samples, 0, homes, 24), epoch);
        for (Position p = 0; p < samples; ++p) {
          const std::uint64_t here = home_of(p, samples, homes, 24);
          ASSERT_EQ(home.emplace(ids[p], here).first->second, here) << "sample " << ids[p] << " in epoch " << epoch;
        }
      }
    }
  }
}

// The dealt share is fresh in every epoch; of the dealt samples 1/H come home by chance.
TEST(PartialShuffleTest, AFreshShareIsDealtInEveryEpoch) {
  constexpr std::uint64_t kSamples = 8000;
  constexpr std::uint64_t kHomes = 4;
  constexpr std::uint64_t kBatch = 80;
  std::vector<std::uint64_t> home(kSamples);
  const std::vector<SampleId> fixed = order(partial(kSamples, 0, kHomes, kBatch), 0);
  for (Position p = 0; p < kSamples; ++p) home[fixed[p]] = home_of(p, kSamples, kHomes, kBatch);
  std::vector<std::uint64_t> times(kSamples);
  std::uint64_t away = 0;
  constexpr Epoch kEpochs = 20;
  for (Epoch epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<SampleId> ids = order(partial(kSamples, 0.2, kHomes, kBatch), epoch);
    for (Position p = 0; p < kSamples; ++p) {
      if (home[ids[p]] == home_of(p, kSamples, kHomes, kBatch)) continue;
      ++times[ids[p]];
      ++away;
    }
  }
  // 0.2 · 3/4 of all places, and as many times per sample as independent tosses give.
  const double chance = 0.2 * (kHomes - 1) / kHomes;
  EXPECT_NEAR(static_cast<double>(away) / (kSamples * kEpochs), chance, 0.005);
  double squares = 0;
  for (const std::uint64_t count : times) squares += std::pow(static_cast<double>(count) - kEpochs * chance, 2);
  EXPECT_NEAR(squares / kSamples / (kEpochs * chance * (1 - chance)), 1, 0.05);
}

// The dealt places of an epoch are spread over it: the first and second half have equally many.
TEST(PartialShuffleTest, DealtPlacesAreSpreadOverTheEpoch) {
  constexpr std::uint64_t kSamples = 16'000;
  const std::vector<SampleId> fixed = order(partial(kSamples, 0, 2, 100), 0);
  std::vector<std::uint64_t> home(kSamples);
  for (Position p = 0; p < kSamples; ++p) home[fixed[p]] = p % 100 / 50;
  Tally places(kSamples, 64);
  std::uint64_t away = 0;
  for (Epoch epoch = 0; epoch < 4; ++epoch) {
    const std::vector<SampleId> ids = order(partial(kSamples, 0.1, 2, 100), epoch);
    for (Position p = 0; p < kSamples; ++p) {
      if (home[ids[p]] == p % 100 / 50) continue;
      places.add(p);
      ++away;
    }
  }
  expect_plausible(places.chance(static_cast<double>(away) / (4 * kSamples)), "dealt places");
}

// The strategy itself; a Schedule with a share of 1 takes the plain shuffle.
TEST(PartialShuffleTest, AllDealtIsAFullShuffle) {
  constexpr std::uint64_t kSamples = 97;
  for (const SampleId id : {0U, 48U, 96U}) {
    Tally positions(kSamples);
    Tally pairs(kSamples * kSamples, 400);
    for (std::uint64_t seed = 0; seed < (soak() ? 200'000U : 10'000U); ++seed) {
      ScheduleOptions options = partial_options(kSamples, 1, 4, 16);
      options.seed = seed;
      const auto dealt = partial_order(options);
      const Position here = dealt->position_of(1, id);
      positions.add(here);
      pairs.add(here * kSamples + dealt->position_of(2, id));
    }
    expect_plausible(positions.chance(), "position of sample " + std::to_string(id));
    expect_plausible(pairs.chance(), "positions in two epochs of sample " + std::to_string(id));
  }
  const Schedule plain({.samples = kSamples, .seed = 42});
  EXPECT_EQ(order(partial(kSamples, 1, 4, 16), 3), order(plain, 3));
}

TEST(OrderTest, ThePlanHashNamesEveryRelaxation) {
  const JobShape shape{.samples = 100, .global_batch = 8};
  std::set<std::uint64_t> hashes{shape_hash(true, shape)};
  const auto is_new = [&](const ScheduleOptions& options) { return hashes.insert(plan_hash(options, shape)).second; };
  EXPECT_FALSE(is_new({.samples = 100}));
  EXPECT_TRUE(is_new({.samples = 100, .echo = 2, .echo_window = 8}));
  EXPECT_TRUE(is_new({.samples = 100, .echo = 3, .echo_window = 8}));
  EXPECT_TRUE(is_new({.samples = 100, .echo = 2, .echo_window = 9}));
  EXPECT_TRUE(is_new({.samples = 100, .reshuffle = 0.5, .homes = 2}));
  EXPECT_TRUE(is_new({.samples = 100, .reshuffle = 0.25, .homes = 2}));
  EXPECT_TRUE(is_new({.samples = 100, .reshuffle = 0.5, .homes = 3}));
  EXPECT_FALSE(is_new({.samples = 100, .homes = 3}));
}

}  // namespace
}  // namespace foreload
