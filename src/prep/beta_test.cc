#include "prep/beta.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "prep/fixed_point.h"

namespace foreload {
namespace {

std::vector<std::uint32_t> draws(double alpha, std::size_t count) {
  std::vector<std::uint32_t> values;
  for (Position position = 0; position < count; ++position) {
    KeyedRandom random(11, 0, position, 3);
    values.push_back(draw_beta_q16(to_q32(alpha), random));
  }
  return values;
}

TEST(BetaTest, GoldenVectors) {
  EXPECT_EQ(draws(0.2, 6), (std::vector<std::uint32_t>{17863, 59128, 65536, 19334, 723, 65530}));
  EXPECT_EQ(draws(1.0, 6), (std::vector<std::uint32_t>{60008, 63465, 31496, 5411, 11732, 37174}));
  EXPECT_EQ(draws(8.0, 6), (std::vector<std::uint32_t>{42815, 45510, 32348, 23581, 24941, 33963}));
}

// Beta(a, a) has mean 1/2, variance 1 / (4 (2a + 1)), and its fourth central moment is 3 v² (2a + 1) / (2a + 3).
TEST(BetaTest, MomentsAreThoseOfTheDistribution) {
  constexpr std::size_t kDraws = 30'000;
  for (const double alpha : {0.01, 0.1, 0.2, 0.5, 0.99, 1.0, 1.5, 4.0, 30.0, 1000.0}) {
    double mean = 0, second = 0, fourth = 0;
    for (const std::uint32_t share : draws(alpha, kDraws)) {
      ASSERT_LE(share, kOneQ16);
      const double x = share / 65536.0 - 0.5;
      mean += x / kDraws;
      second += x * x / kDraws;
      fourth += x * x * x * x / kDraws;
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    const double fourth_moment = 3 * variance * variance * (2 * alpha + 1) / (2 * alpha + 3);
    EXPECT_NEAR(mean, 0, 5 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(second / variance, 1, 0.03) << alpha;
    EXPECT_NEAR(fourth / fourth_moment, 1, 0.06) << alpha;
  }
}

// With alpha 1 the distribution is uniform, and with 1/2 it is the arcsine law.
TEST(BetaTest, QuantilesOfTheKnownCases) {
  constexpr std::size_t kDraws = 30'000;
  const auto flat = draws(1.0, kDraws);
  const auto bent = draws(0.5, kDraws);
  for (const double at : {0.02, 0.1, 0.25, 0.5, 0.8, 0.97}) {
    double uniform = 0, arcsine = 0;
    for (const std::uint32_t share : flat) uniform += share <= at * 65536 ? 1.0 / kDraws : 0;
    for (const std::uint32_t share : bent) arcsine += share <= at * 65536 ? 1.0 / kDraws : 0;
    EXPECT_NEAR(uniform, at, 0.012);
    EXPECT_NEAR(arcsine, 2 / M_PI * std::asin(std::sqrt(at)), 0.012);
  }
}

}  // namespace
}  // namespace foreload
