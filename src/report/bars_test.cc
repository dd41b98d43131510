#include "report/bars.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

namespace foreload {
namespace {

// The widths of all rectangles, in percent.
std::vector<double> widths(const Element& element) {
  const std::string text = element.to_string();
  const std::regex pattern("<rect [^>]*width=\"([0-9.]+)%\"");
  std::vector<double> found;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    found.push_back(std::stod((*match)[1]));
  }
  return found;
}

TEST(BarsTest, PartsHaveTheirShareOfTheWhole) {
  const auto found = widths(stacked_bar({{"busy", Tone::kFirst, 0.25}, {"stall", Tone::kThird, 0.75}}, 1, "time"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(found[0], 25, 0.001);
  EXPECT_NEAR(found[1], 75, 0.001);
}

TEST(BarsTest, NothingIsWiderThanTheBar) {
  const double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<BarPart> parts = {{"a", Tone::kFirst, 0.9},       {"b", Tone::kSecond, std::nan("")},
                                      {"c", Tone::kThird, -5},        {"d", Tone::kFourth, 7},
                                      {"e", Tone::kQuiet, kInfinity}, {"f", Tone::kFirst, 1e300}};
  double sum = 0;
  for (const double width : widths(stacked_bar(parts, 1, "absurd"))) sum += width;
  EXPECT_NEAR(sum, 100, 0.01);
}

TEST(BarsTest, AWholeOfNothingIsAnEmptyBar) {
  for (const double whole : {0.0, -1.0, std::nan("")}) {
    EXPECT_TRUE(widths(stacked_bar({{"a", Tone::kFirst, 1}}, whole, "none")).empty());
  }
  EXPECT_TRUE(widths(bar_rows({{"zero", {{"a", Tone::kFirst, 0}}, {}, false, ""}})).empty());
  EXPECT_TRUE(widths(stacked_bar({}, 1, "none")).empty());
}

TEST(BarsTest, TheLargestRowFillsTheWidth) {
  const auto found = widths(bar_rows({{"small", {{"", Tone::kFirst, 50}}, {}, false, ""},
                                      {"large", {{"", Tone::kFirst, 150}, {"", Tone::kThird, 50}}, {}, true, "now"}}));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_NEAR(found[0], 25, 0.001);
  EXPECT_NEAR(found[1] + found[2], 100, 0.001);
}

TEST(BarsTest, RowsSayTheirNumbersAndMarks) {
  const std::string text =
      bar_groups({{"Requests", {{"raw <b>", {{"", Tone::kFirst, 1}}, {{1, "1", "/raw"}}, true, "now"}}}}).to_string();
  EXPECT_NE(text.find("raw &lt;b&gt;<em>now</em>"), std::string::npos);
  EXPECT_NE(text.find("<data value=\"1\" data-json=\"/raw\">1</data>"), std::string::npos);
  EXPECT_NE(text.find("<h3>Requests</h3>"), std::string::npos);
}

}  // namespace
}  // namespace foreload
