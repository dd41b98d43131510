#include "report/scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "report/text_width.h"

namespace foreload {
namespace {

std::vector<std::string> labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> texts;
  for (const Tick& tick : ticks) texts.push_back(tick.label);
  return texts;
}

using Labels = std::vector<std::string>;

// Pairs of ends of very different size and place.
std::vector<std::pair<double, double>> many_ranges() {
  std::vector<std::pair<double, double>> ranges;
  for (const double size : {1e-280, 1e-9, 0.003, 0.7, 1.0, 3.3, 47.0, 812.0, 1920.0, 99'999.0, 3.7e7, 8e14, 1e280}) {
    for (const double start : {0.0, -0.4, 0.1, 1.0, 17.0, -3.0}) ranges.emplace_back(start * size, start * size + size);
  }
  return ranges;
}

TEST(ScaleTest, TicksAreAtRoundNumbers) {
  EXPECT_EQ(labels(round_ticks(0, 2000, 6)), (Labels{"0", "500", "1,000", "1,500", "2,000"}));
  EXPECT_EQ(labels(round_ticks(1, 16, 8)), (Labels{"2", "4", "6", "8", "10", "12", "14", "16"}));
  EXPECT_EQ(labels(round_ticks(0, 1, 6)), (Labels{"0", "0.2", "0.4", "0.6", "0.8", "1.0"}));
  EXPECT_EQ(labels(round_ticks(-10, 10, 5)), (Labels{"−10", "−5", "0", "5", "10"}));
  EXPECT_EQ(labels(round_ticks(0, 15'360, 4)), (Labels{"0", "5\u00A0k", "10\u00A0k", "15\u00A0k"}));
  EXPECT_EQ(labels(round_ticks(0, 25e6, 3)), (Labels{"0", "10\u00A0M", "20\u00A0M"}));
}

TEST(ScaleTest, TicksLieInTheRangeAndAreOneTwoOrFiveApart) {
  for (const auto& [low, high] : many_ranges()) {
    const auto ticks = round_ticks(low, high, 6);
    ASSERT_GE(ticks.size(), 1u) << low << " " << high;
    ASSERT_LE(ticks.size(), 6u) << low << " " << high;
    const double rest = (high - low) * 1e-6;
    EXPECT_GE(ticks.front().value, low - rest);
    EXPECT_LE(ticks.back().value, high + rest);
    if (ticks.size() < 2) continue;
    const double step = ticks[1].value - ticks[0].value;
    const double digit = step / std::pow(10, std::floor(std::log10(step) + 1e-6));
    EXPECT_LT(std::min({std::abs(digit - 1), std::abs(digit - 2), std::abs(digit - 5)}), 1e-6) << low << " " << high;
    const auto texts = labels(ticks);
    EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()).size(), texts.size()) << low << " " << high;
  }
}

TEST(ScaleTest, EndsAreAtTheirPlaces) {
  const Scale scale(10, 20, 50, 250);
  EXPECT_DOUBLE_EQ(scale.at(10), 50);
  EXPECT_DOUBLE_EQ(scale.at(15), 150);
  EXPECT_DOUBLE_EQ(scale.at(20), 250);
}

TEST(ScaleTest, OneValueIsInTheMiddle) {
  for (const double value : {0.0, 5.0, -5.0, 1e300, -1e300, 1e-300}) {
    EXPECT_NEAR(Scale(value, value, 0, 100).at(value), 50, 1e-6) << value;
  }
}

TEST(ScaleTest, LabelsNeverOverlapOrLeaveThePicture) {
  for (const auto& [low, high] : many_ranges()) {
    const Scale scale(low, high, 40, 426);
    const auto ticks = scale.ticks_across(12, 440);
    double end = 0;
    for (const Tick& tick : ticks) {
      const double half = text_width(tick.label, 12) / 2;
      if (ticks.size() == 1) continue;  // it is moved into the picture
      EXPECT_GE(scale.at(tick.value) - half, end) << low << " " << high;
      end = scale.at(tick.value) + half;
    }
    EXPECT_LE(end, 440) << low << " " << high;
  }
}

TEST(ScaleTest, OnlyFiniteValuesOfBearableSizeAreDrawn) {
  EXPECT_TRUE(is_drawable(-1e300));
  EXPECT_FALSE(is_drawable(1.1e300));
  EXPECT_FALSE(is_drawable(std::nan("")));
  EXPECT_FALSE(is_drawable(-std::numeric_limits<double>::infinity()));
}

}  // namespace
}  // namespace foreload
