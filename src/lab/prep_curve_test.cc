#include "lab/prep_curve.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

PrepAt at(unsigned threads, double rate) {
  return {threads, {rate, 0.9 * rate, 1.1 * rate, 5}};
}

TEST(PrepCurveTest, BetweenMeasuredPointsIsAStraightLine) {
  const PrepCurve curve(std::vector{at(4, 3400), at(1, 1000), at(2, 1900)});
  EXPECT_DOUBLE_EQ(curve.at(1).value, 1000);
  EXPECT_DOUBLE_EQ(curve.at(2).value, 1900);
  EXPECT_DOUBLE_EQ(curve.at(3).value, 2650);
  EXPECT_DOUBLE_EQ(curve.at(3).low, 0.9 * 2650);
  EXPECT_DOUBLE_EQ(curve.at(0.5).value, 500);
  EXPECT_EQ(curve.most_measured(), 4u);
}

// R(4) = 4·1000/(1 + 3s) = 2500 gives s = 0.2; R(8) = 8000/(1 + 7·0.2) = 3333.
TEST(PrepCurveTest, BeyondThemAmdahlsLawGoesOn) {
  const PrepCurve curve(std::vector{at(1, 1000), at(4, 2500)});
  EXPECT_NEAR(curve.serial_share(), 0.2, 1e-12);
  EXPECT_NEAR(curve.at(8).value, 3333.333, 0.001);
}

// One number does not tell how prep scales; two tell it for some distance.
TEST(PrepCurveTest, NothingGrowsBeyondASingleNumberOrFourTimesTheLast) {
  const PrepCurve one(std::vector{at(1, 1000)});
  EXPECT_EQ(one.reach(), 1u);
  EXPECT_DOUBLE_EQ(one.at(22).value, 1000);
  EXPECT_DOUBLE_EQ(one.at(22).low, 900);
  EXPECT_DOUBLE_EQ(one.at(22).high, 22 * 1100);
  const PrepCurve lucky(std::vector{at(1, 1000), at(2, 2100)});
  EXPECT_EQ(lucky.reach(), 8u);
  EXPECT_DOUBLE_EQ(lucky.at(8).value, 8400);
  EXPECT_DOUBLE_EQ(lucky.at(1000).value, 8400);
}

TEST(PrepCurveTest, BeyondThemNothingIsSure) {
  const PrepCurve curve(std::vector{at(1, 1000), at(2, 2000)});
  EXPECT_DOUBLE_EQ(curve.at(8).value, 8000);
  EXPECT_DOUBLE_EQ(curve.at(8).low, 1800);       // no growth
  EXPECT_DOUBLE_EQ(curve.at(8).high, 4 * 2200);  // no loss
}

TEST(PrepCurveTest, FasterThanLinearIsTakenAsLinear) {
  const PrepCurve curve(std::vector{at(1, 1000), at(2, 2100)});
  EXPECT_EQ(curve.serial_share(), 0);
  EXPECT_DOUBLE_EQ(curve.at(4).value, 4200);
}

TEST(PrepCurveTest, SufficientThreadsAreTheFewestThatDo) {
  const PrepCurve curve(std::vector{at(1, 1000), at(4, 2500)});
  EXPECT_EQ(curve.sufficient(1000, 64), 1u);
  EXPECT_EQ(curve.sufficient(1001, 64), 2u);
  EXPECT_EQ(curve.sufficient(3333, 64), 8u);
  EXPECT_FALSE(curve.sufficient(5001, 1000).has_value());  // 1/s = 5 times one thread is the limit
}

TEST(PrepCurveTest, WhatWasNotMeasuredIsNotKnown) {
  EXPECT_FALSE(PrepCurve({}).known());
  EXPECT_FALSE(PrepCurve(std::vector{PrepAt{1, {}}}).known());
  EXPECT_FALSE(PrepCurve({}).sufficient(1, 8).has_value());
}

}  // namespace
}  // namespace foreload
