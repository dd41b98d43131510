#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "foreload/schedule.h"
#include "plan/assignment.h"
#include "plan/test_statistics.h"

namespace foreload {
namespace {

std::shared_ptr<const WeightTable> table(const std::vector<double>& weights) {
  auto made = WeightTable::create(weights);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return std::make_shared<const WeightTable>(std::move(*made));
}

Schedule weighted(const std::vector<double>& weights, std::uint64_t seed, std::uint64_t epoch_samples = 0) {
  return Schedule({.samples = weights.size(), .seed = seed, .weights = table(weights), .epoch_samples = epoch_samples});
}

std::string refusal(const std::vector<double>& weights) {
  auto made = WeightTable::create(weights);
  return made.ok() ? "" : made.error().message;
}

std::vector<double> thousand() {
  std::vector<double> weights;
  for (int i = 0; i < 1000; ++i) weights.push_back(i % 17 / 7.0 + 0.25);
  return weights;
}

// Computed by an independent implementation with Python's integers and fractions.
TEST(WeightsTest, TheTableIsTheSameOnEveryMachine) {
  const auto few = table({1, 2, 3, 4});
  EXPECT_EQ(few->weight(0), 576460752303423488U);
  EXPECT_EQ(few->weight(3), 4 * few->weight(0));
  EXPECT_EQ(few->total(), 5764607523034234880U);
  const auto odd = table({0.1, 0.1, 0.1, 0, 1e-300, 5e-324, 1e10, 2.5});
  const std::uint64_t parts[] = {0x3333333, 0x3333333, 0x3333333, 0, 1, 1, 0x4a817c8000000000, 0x50000000};
  for (SampleId id = 0; id < 8; ++id) EXPECT_EQ(odd->weight(id), parts[id]) << id;
  EXPECT_EQ(table(thousand())->total(), 6259360110669650689U);
}

TEST(WeightsTest, TheDrawsAreTheSameInEveryRelease) {
  const Schedule few = weighted({1, 2, 3, 4}, 7);
  const SampleId drawn[] = {3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3};
  const Schedule long_epoch = weighted({1, 2, 3, 4}, 7, 12);
  for (Position p = 0; p < 12; ++p) EXPECT_EQ(long_epoch.sample_at(0, p), drawn[p]) << p;
  for (Position p = 0; p < 4; ++p) EXPECT_EQ(few.sample_at(0, p), drawn[p]) << p;
  EXPECT_EQ(few.substitute(0, 0, 1), 1U);
  EXPECT_EQ(few.substitute(0, 0, 2), 3U);
  EXPECT_EQ(few.substitute(0, 0, 3), 1U);
  const Schedule many = weighted(thousand(), 42, 1'000'000);
  const std::pair<Position, SampleId> golden[] = {{0, 710}, {1, 965}, {2, 304}, {3, 456},
                                                  {4, 400}, {5, 776}, {6, 232}, {999'999, 352}};
  for (const auto& [position, id] : golden) EXPECT_EQ(many.sample_at(89, position), id) << position;
}

TEST(WeightsTest, AnEpochHasAsManyDrawsAsAsked) {
  EXPECT_EQ(weighted({1, 1, 1}, 0).size(), 3U);
  EXPECT_EQ(weighted({1, 1, 1}, 0, 2).size(), 2U);
  EXPECT_EQ(weighted({1, 1, 1}, 0, 1000).size(), 1000U);
  EXPECT_FALSE(weighted({1, 1, 1}, 0).is_permutation());
  EXPECT_DEATH((void)weighted({1, 1, 1}, 0, 2).sample_at(0, 2), "positions of an epoch");
  EXPECT_DEATH((void)weighted({1, 1, 1}, 0).position_of(0, 0), "only in a permutation");
}

TEST(WeightsTest, EachSampleIsDrawnAsOftenAsItsWeightSays) {
  for (const std::uint64_t seed : {0U, 1U, 2U, 3U}) {
    const std::vector<double> weights = seed % 2 == 0 ? thousand() : std::vector<double>{0.5, 1, 1.5, 20, 0.01, 3};
    const std::uint64_t draws = soak() ? 5'000'000 : 200'000;
    const Schedule schedule = weighted(weights, seed, draws);
    double sum = 0;
    for (const double weight : weights) sum += weight;
    std::vector<std::uint64_t> seen(weights.size());
    std::vector<double> expected;
    for (const double weight : weights) expected.push_back(weight / sum * static_cast<double>(draws));
    for (Position p = 0; p < draws; ++p) ++seen[schedule.sample_at(seed, p)];
    expect_plausible(chi_square_tail(deviation(seen, expected), static_cast<double>(weights.size() - 1)),
                     "draws with seed " + std::to_string(seed));
  }
}

TEST(WeightsTest, NeighboursEpochsAndSubstitutesAreUnrelated) {
  const std::vector<double> equal(256, 0.3);
  const std::uint64_t draws = 40'000;
  const Schedule schedule = weighted(equal, 5, draws + 1);
  std::vector<SampleId> here, next, later, spare;
  for (Position p = 0; p < draws; ++p) {
    here.push_back(schedule.sample_at(2, p));
    next.push_back(schedule.sample_at(2, p + 1));
    later.push_back(schedule.sample_at(3, p));
    spare.push_back(schedule.substitute(2, p, 1));
  }
  expect_plausible(chance_unrelated(here, next, 256), "neighbours");
  expect_plausible(chance_unrelated(here, later, 256), "epochs");
  expect_plausible(chance_unrelated(here, spare, 256), "substitutes");
}

TEST(WeightsTest, ASampleOfWeightZeroNeverComes) {
  const Schedule schedule = weighted({0, 1, 0, 0, 1e-6, 0}, 3, 50'000);
  std::map<SampleId, std::uint64_t> seen;
  for (Position p = 0; p < schedule.size(); ++p) {
    ++seen[schedule.sample_at(0, p)];
    ++seen[schedule.substitute(0, p, 1)];
  }
  for (const auto& [id, count] : seen) EXPECT_TRUE(id == 1 || id == 4) << id;
}

TEST(WeightsTest, TheWholeRangeOfNumbersIsPossible) {
  constexpr double kMax = std::numeric_limits<double>::max();
  constexpr double kMin = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(table({kMin, kMin, kMin})->weight(0), table({1, 1, 1})->weight(2));
  EXPECT_EQ(table({kMax, kMax, kMax})->weight(0), table({kMax, kMax, kMax})->weight(2));
  EXPECT_EQ(table({kMax, kMin, -0.0})->weight(1), 1U);
  EXPECT_EQ(table({kMax, kMin, -0.0})->weight(2), 0U);
  EXPECT_EQ(table({7})->size(), 1U);
  EXPECT_EQ(weighted({kMin}, 1).sample_at(0, 0), 0U);
  const std::vector<double> equal(100'000, 0.1);
  EXPECT_EQ(table(equal)->weight(0), table(equal)->weight(99'999));
  EXPECT_GE(table(equal)->total(), 1ULL << 62);
  EXPECT_LE(table(equal)->total(), (1ULL << 63) + 100'000);
}

// Each weight is cut off by less than a part in 2^61 of the sum, and the sum by as many parts as there are weights.
TEST(WeightsTest, AShareIsWhatTheWeightsSayUpToTheLastBits) {
  const std::vector<double> weights{1, 3, 0.1, 1e-9, 12345.678, 2, 2, 2};
  const auto made = table(weights);
  long double sum = 0;
  for (const double weight : weights) sum += weight;
  for (SampleId id = 0; id < weights.size(); ++id) {
    const long double exact = static_cast<long double>(weights[id]) / sum;
    const long double found = static_cast<long double>(made->weight(id)) / static_cast<long double>(made->total());
    const double bound = std::ldexp(1 + static_cast<double>(exact) * static_cast<double>(weights.size()), -61);
    EXPECT_LT(std::fabs(static_cast<double>(exact - found)), bound) << id;
  }
}

TEST(WeightsTest, AWrongWeightIsRefusedWithItsPlaceAndValue) {
  EXPECT_NE(refusal({1, 2, -0.5}).find("sample 2 is -0.5"), std::string::npos) << refusal({1, 2, -0.5});
  EXPECT_NE(refusal({1, std::numeric_limits<double>::quiet_NaN()}).find("sample 1 is nan"), std::string::npos);
  EXPECT_NE(refusal({std::numeric_limits<double>::infinity()}).find("sample 0 is inf"), std::string::npos);
  EXPECT_NE(refusal({0, 0, 0}).find("all 3 are 0"), std::string::npos);
  EXPECT_NE(refusal({}).find("there are none"), std::string::npos);
}

TEST(WeightsTest, ThePlanHashNamesWeightsAndDraws) {
  const JobShape shape{.samples = 3, .global_batch = 2};
  const auto hash = [&](const std::vector<double>& weights, std::uint64_t draws) {
    return plan_hash(weighted(weights, 1, draws).options(), shape);
  };
  EXPECT_EQ(plan_hash({.samples = 3}, shape), shape_hash(true, shape));
  EXPECT_EQ(hash({1, 2, 3}, 0), hash({2, 4, 6}, 0));  // the same shares
  EXPECT_NE(hash({1, 2, 3}, 0), hash({1, 2, 4}, 0));
  EXPECT_NE(hash({1, 2, 3}, 0), hash({1, 2, 3}, 9));
  EXPECT_NE(hash({1, 1, 1}, 0), shape_hash(true, shape));
}

}  // namespace
}  // namespace foreload
