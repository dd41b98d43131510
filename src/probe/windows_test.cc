#include "probe/windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

// Skewed, as times are: its median is known, its mean is another.
double skewed(KeyedRandom& random) {
  const double unit = (random.next_u32() + 0.5) / 4294967296.0;
  return -std::log(unit);
}
const double kMedian = std::log(2.0);

double share_of_intervals_that_hold_the_median(unsigned windows) {
  constexpr unsigned kTrials = 4000;
  unsigned hits = 0;
  for (unsigned trial = 0; trial < kTrials; ++trial) {
    KeyedRandom random(windows, trial, 0, 0);
    std::vector<double> values(windows);
    for (double& value : values) value = skewed(random);
    const Figure figure = figure_of(values);
    hits += figure.low <= kMedian && kMedian <= figure.high ? 1 : 0;
  }
  return static_cast<double>(hits) / kTrials;
}

TEST(WindowsTest, TheMedianLiesInTheIntervalNineteenTimesInTwenty) {
  for (const unsigned windows : {6u, 7u, 9u, 15u, 31u}) {
    EXPECT_GE(share_of_intervals_that_hold_the_median(windows), 0.945) << windows;
  }
}

TEST(WindowsTest, ManyWindowsNarrowTheInterval) {
  std::vector<double> values;
  for (int i = 0; i < 31; ++i) values.push_back(i);
  const Figure figure = figure_of(values);
  EXPECT_EQ(figure.value, 15);
  EXPECT_EQ(figure.windows, 31u);
  // Binomial(31, 1/2): nine or fewer below the median in 1.5 % of cases, ten or fewer in 3.5 %.
  EXPECT_EQ(figure.low, 9);
  EXPECT_EQ(figure.high, 21);
}

TEST(WindowsTest, FewWindowsGiveAWideIntervalAndTwoNone) {
  const Figure three = figure_of({10, 12, 11});
  EXPECT_EQ(three.value, 11);
  EXPECT_EQ(three.low, 8);
  EXPECT_EQ(three.high, 14);
  EXPECT_EQ(figure_of({1, 100, 50}).low, 0);
  EXPECT_FALSE(figure_of({10, 11}).known());
  EXPECT_FALSE(figure_of({}).known());
}

TEST(WindowsTest, WindowsEndWhenTheirMedianIsSure) {
  const Allowance allowance({});
  unsigned calls = 0;
  const auto steady = repeat_windows(allowance, allowance.deadline(1), [&]() -> Result<std::optional<double>> {
    ++calls;
    return std::optional(5.0);
  });
  ASSERT_TRUE(steady.ok());
  EXPECT_EQ(calls, WindowRule{}.least);
  EXPECT_EQ(steady->value, 5);
  const auto wild = repeat_windows(allowance, allowance.deadline(1), [&]() -> Result<std::optional<double>> {
    return std::optional(++calls % 2 == 0 ? 1.0 : 100.0);
  });
  ASSERT_TRUE(wild.ok());
  EXPECT_EQ(wild->windows, WindowRule{}.most);
}

TEST(WindowsTest, WindowsEndWhenThereAreNoMore) {
  const Allowance allowance({});
  unsigned calls = 0;
  const auto figure = repeat_windows(allowance, allowance.deadline(1), [&]() -> Result<std::optional<double>> {
    return ++calls <= 4 ? std::optional(1.0) : std::nullopt;
  });
  ASSERT_TRUE(figure.ok());
  EXPECT_EQ(figure->windows, 4u);
}

TEST(WindowsTest, AnAllowanceGivesNoMoreBytesAndTimeThanThereAre) {
  MeasureOptions how;
  how.most_bytes = 1000;
  how.time = 1h;
  bool stop = false;
  how.stop = [&] { return stop; };
  Allowance allowance(how);
  EXPECT_EQ(allowance.bytes(0.5), 500u);
  allowance.spend(700);
  EXPECT_EQ(allowance.bytes(0.5), 300u);
  allowance.spend(700);
  EXPECT_EQ(allowance.bytes(0.5), 0u);
  EXPECT_LE(allowance.deadline(2), allowance.deadline(1));
  EXPECT_TRUE(allowance.go_on().ok());
  stop = true;
  EXPECT_EQ(allowance.go_on().error().code, Code::kCancelled);
}

}  // namespace
}  // namespace foreload
