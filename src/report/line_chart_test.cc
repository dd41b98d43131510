#include "report/line_chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "report/text_width.h"

namespace foreload {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Box {
  std::string text;
  double left;
  double right;
  double baseline;
};

// Where the labels are that are always seen. Read-outs share their place.
std::vector<Box> labels_of(const std::string& svg) {
  static const std::regex spots("<g class=\"spot\">.*?</g>");
  const std::string seen = std::regex_replace(svg, spots, "");
  static const std::regex pattern("<text x=\"([-0-9.e+]+)\" y=\"([-0-9.e+]+)\" text-anchor=\"(\\w+)\">([^<]*)</text>");
  std::vector<Box> boxes;
  for (std::sregex_iterator match(seen.begin(), seen.end(), pattern), end; match != end; ++match) {
    const double x = std::stod((*match)[1]);
    const double width = text_width((*match)[4].str(), kChartFont);
    const std::string anchor = (*match)[3];
    const double left = anchor == "start" ? x : anchor == "end" ? x - width : x - width / 2;
    boxes.push_back({(*match)[4], left, left + width, std::stod((*match)[2])});
  }
  return boxes;
}

double height_of(const std::string& svg) {
  std::smatch match;
  EXPECT_TRUE(std::regex_search(svg, match, std::regex("viewBox=\"0 0 440 ([0-9.]+)\"")));
  return std::stod(match[1]);
}

void expect_tidy(const LineChart& chart) {
  const std::string svg = line_chart(chart).to_string();
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  const auto boxes = labels_of(svg);
  ASSERT_FALSE(boxes.empty());
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_GE(boxes[i].left, -0.01) << boxes[i].text;
    EXPECT_LE(boxes[i].right, kChartWidth + 0.01) << boxes[i].text;
    EXPECT_GE(boxes[i].baseline, kChartFont - 1) << boxes[i].text;
    EXPECT_LE(boxes[i].baseline, height_of(svg)) << boxes[i].text;
    for (std::size_t k = 0; k < i; ++k) {
      const bool beside = boxes[i].right <= boxes[k].left + 0.01 || boxes[k].right <= boxes[i].left + 0.01;
      const bool above = std::abs(boxes[i].baseline - boxes[k].baseline) >= kChartFont;
      EXPECT_TRUE(beside || above) << boxes[i].text << " and " << boxes[k].text;
    }
  }
}

LineChart curve(std::size_t points, double x_step, double y_step) {
  LineChart chart{"a curve", "GB", {}, {{"rate", Tone::kFirst, {}}}, {}};
  for (std::size_t i = 0; i < points; ++i) {
    const auto place = static_cast<double>(i);
    chart.lines[0].points.push_back({place * x_step, place * y_step, ""});
  }
  return chart;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(LineChartTest, NoPointsAreSaidInWords) {
  EXPECT_NE(line_chart(curve(0, 1, 1)).to_string().find("no point to draw"), std::string::npos);
  LineChart chart = curve(2, kNan, 1);
  EXPECT_NE(line_chart(chart).to_string().find("no point to draw"), std::string::npos);
  chart.marks.push_back({3, "here", true});
  EXPECT_NE(line_chart(chart).to_string().find("no point to draw"), std::string::npos) << "a mark alone is no chart";
}

TEST(LineChartTest, OnePointIsADot) {
  const LineChart chart = curve(1, 1, 1);
  expect_tidy(chart);
  EXPECT_EQ(count(line_chart(chart).to_string(), "class=\"dot tone-1\""), 1u);
}

TEST(LineChartTest, ManyPointsAreAllDrawnAndSomeAreReadOut) {
  LineChart chart = curve(1000, 0.5, 3);
  for (std::size_t i = 0; i < 1000; ++i) chart.lines[0].points[i].says = "point " + std::to_string(i);
  expect_tidy(chart);
  const std::string svg = line_chart(chart).to_string();
  EXPECT_EQ(count(svg, "<g class=\"spot\">"), kMostSpots);
  EXPECT_NE(svg.find(">point 0<"), std::string::npos);
  EXPECT_NE(svg.find(">point 999<"), std::string::npos);
  const std::size_t begin = svg.find(" d=\"M");
  EXPECT_EQ(count(svg.substr(begin, svg.find('"', begin + 5) - begin), "L"), 999u);
}

TEST(LineChartTest, ValuesOfAnySizeStayInThePicture) {
  for (const double x : {1e-300, 1e-9, 0.003, 1.0, 77.0, 4e9, 1e18, 1e298}) {
    for (const double y : {-1e298, -40.0, 0.0, 1e-12, 0.4, 1920.0, 1e7, 3e15, 1e298}) {
      SCOPED_TRACE(testing::Message() << x << " " << y);
      expect_tidy(curve(5, x, y));
    }
  }
}

TEST(LineChartTest, WhatCanNotBeDrawnIsAGap) {
  LineChart chart = curve(9, 1, 1);
  chart.lines[0].points[2].y = kNan;
  chart.lines[0].points[5].y = kInfinity;
  chart.lines[0].points[6].x = -kInfinity;
  chart.lines[0].points[8].y = 1.5e300;
  chart.areas.push_back({"lost", Tone::kThird, {{0, 0, 1}, {1, kNan, 2}, {2, 1, kInfinity}, {3, 1, 2}, {4, 1, 3}}});
  expect_tidy(chart);
  const std::string svg = line_chart(chart).to_string();
  EXPECT_EQ(count(svg, "class=\"dot tone-1\""), 1u) << "point 7 stands alone";
  std::smatch line;
  ASSERT_TRUE(std::regex_search(svg, line, std::regex("class=\"line tone-1\" d=\"([^\"]*)\"")));
  EXPECT_EQ(count(line[1], "M"), 3u);
  std::smatch area;
  ASSERT_TRUE(std::regex_search(svg, area, std::regex("class=\"area tone-3\" d=\"([^\"]*)\"")));
  EXPECT_EQ(count(area[1], "M"), 2u);
  EXPECT_EQ(count(area[1], "Z"), 2u);
}

TEST(LineChartTest, MarksStandOnTheLine) {
  LineChart chart = curve(11, 10, 100);
  chart.marks = {{25, "you are here", true}, {60, "knee: 60 GB", false}};
  const std::string svg = line_chart(chart).to_string();
  std::smatch ring;
  ASSERT_TRUE(std::regex_search(svg, ring, std::regex("class=\"here\" cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"")));
  std::smatch spots;
  ASSERT_TRUE(std::regex_search(
      svg, spots, std::regex("class=\"line tone-1\" d=\"M([0-9.]+) ([0-9.]+)[^\"]*L([0-9.]+) ([0-9.]+)\"")));
  const auto between = [](const std::string& a, const std::string& b) {
    return std::stod(a) + (std::stod(b) - std::stod(a)) / 4;
  };
  EXPECT_NEAR(std::stod(ring[1]), between(spots[1], spots[3]), 0.02);
  EXPECT_NEAR(std::stod(ring[2]), between(spots[2], spots[4]), 0.02);
  EXPECT_EQ(count(svg, "class=\"knee\""), 1u);
}

TEST(LineChartTest, LabelsOfMarksNeverMeet) {
  for (const double here : {0.0, 1.0, 50.0, 99.0, 100.0, 250.0, -80.0, kNan}) {
    for (const double knee : {0.0, 1.0, 50.0, 51.0, 100.0, kInfinity}) {
      for (const std::string& label : {std::string("knee"), std::string(4096, 'k'), std::string("<&>\"'")}) {
        SCOPED_TRACE(testing::Message() << here << " " << knee);
        LineChart chart = curve(11, 10, 190);
        chart.x_title = std::string(200, 'u');
        chart.marks = {{here, "you are here", true}, {knee, label, false}};
        if (label[0] == '<') {
          EXPECT_EQ(line_chart(chart).to_string().find("<&"), std::string::npos);
        } else {
          expect_tidy(chart);
        }
      }
    }
  }
}

TEST(LineChartTest, TheTitleOfTheAxisLeavesRoomForTheReadOut) {
  LineChart chart = curve(2, 1, 1);
  chart.x_title = "accelerators per host and then some more words";
  for (const std::size_t length : {1, 20, 40, 4096}) {
    chart.lines[0].points[1].says = std::string(length, 'r');
    const std::string svg = line_chart(chart).to_string();
    const double read_out = text_width(fitted(chart.lines[0].points[1].says, kChartFont, kChartWidth - 14), kChartFont);
    const Box title = labels_of(svg).back();
    if (length == 4096) {
      EXPECT_EQ(title.text, "1.0") << "there is no room for a title";
      continue;
    }
    EXPECT_FALSE(title.text.empty());
    EXPECT_LE(title.right, kChartWidth - 14 - read_out + 1) << title.text;
  }
}

TEST(LineChartTest, AMarkBesideTheLineHasNoRing) {
  LineChart chart = curve(3, 1, 1);
  chart.marks = {{7, "you are here", true}};
  const std::string svg = line_chart(chart).to_string();
  EXPECT_EQ(count(svg, "class=\"here\""), 0u);
  EXPECT_NE(svg.find("you are here"), std::string::npos);
}

TEST(LineChartTest, TheLegendNamesLinesAndAreas) {
  LineChart chart = curve(3, 1, 1);
  chart.areas.push_back({"lost to <prep>", Tone::kSecond, {{0, 0, 1}}});
  chart.areas.push_back({"unknown", Tone::kThird, {{0, 0, kNan}}});
  const std::string text = legend_of(chart).to_string();
  EXPECT_NE(text.find("<span>rate</span>"), std::string::npos);
  EXPECT_NE(text.find("<span>lost to &lt;prep&gt;</span>"), std::string::npos);
  EXPECT_NE(text.find("area tone-2"), std::string::npos);
  EXPECT_EQ(text.find("unknown"), std::string::npos) << "it is not drawn";
}

}  // namespace
}  // namespace foreload
