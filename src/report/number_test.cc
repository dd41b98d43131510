#include "report/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace foreload {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(NumberTest, NumbersHaveAboutThreeDigits) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(-0.0), "0");
  EXPECT_EQ(short_number(812.34), "812");
  EXPECT_EQ(short_number(1240), "1,240");
  EXPECT_EQ(short_number(1281167), "1,281,167");
  EXPECT_EQ(short_number(41.52), "41.5");
  EXPECT_EQ(short_number(99.96), "100");
  EXPECT_EQ(short_number(9.996), "10");
  EXPECT_EQ(short_number(1.5), "1.5");
  EXPECT_EQ(short_number(0.0812), "0.081");
  EXPECT_EQ(short_number(-3), "−3");
  EXPECT_EQ(short_number(1.23e18), "1.2e+18");
  EXPECT_EQ(short_number(2e-7), "2e-07");
}

TEST(NumberTest, WhatIsNoNumberIsADash) {
  for (const double value : {std::nan(""), kInfinity, -kInfinity}) {
    EXPECT_EQ(short_number(value), "–");
    EXPECT_EQ(whole_number(value), "–");
    EXPECT_EQ(percent(value), "–");
    EXPECT_EQ(gain_text(value), "–");
  }
}

TEST(NumberTest, WholeNumbersKeepTheirDigits) {
  EXPECT_EQ(whole_number(12), "12");
  EXPECT_EQ(whole_number(1281167), "1,281,167");
  EXPECT_EQ(whole_number(0.5), "0.5");
  EXPECT_EQ(whole_number(-1000), "−1,000");
}

TEST(NumberTest, SharesSayAllOrNothingOnlyWhenItIsSo) {
  EXPECT_EQ(percent(0.41), "41\u00A0%");
  EXPECT_EQ(percent(0), "0\u00A0%");
  EXPECT_EQ(percent(1), "100\u00A0%");
  EXPECT_EQ(percent(0.9997), "99.9\u00A0%");
  EXPECT_EQ(percent(0.00001), "<0.1\u00A0%");
  EXPECT_EQ(percent(0.003), "0.3\u00A0%");
  EXPECT_EQ(percent(-0.021), "−2\u00A0%");
  EXPECT_EQ(percent(12.4), "1,240\u00A0%");
}

TEST(NumberTest, GainsHaveASign) {
  EXPECT_EQ(gain_text(0.31), "+31\u00A0%");
  EXPECT_EQ(gain_text(-0.1), "−10\u00A0%");
  EXPECT_EQ(gain_text(0), "no gain");
  EXPECT_EQ(gain_text(11), "12 times as fast");
}

TEST(NumberTest, AProgramFindsAllDigitsAgain) {
  const double value = 0.1 + 0.2;
  const std::string text = number_element({value, "0.3", "/prediction/busy"}).to_string();
  EXPECT_EQ(text, "<data value=\"0.30000000000000004\" data-json=\"/prediction/busy\">0.3</data>");
  EXPECT_EQ(number_element({2, "2", ""}).to_string(), "<data value=\"2\">2</data>");
}

}  // namespace
}  // namespace foreload
