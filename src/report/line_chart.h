// A line chart: areas, lines over them, and marks at places of the x-axis, as an inline SVG. The picture is 440 wide in
// its own units and is scaled by the page. Values that can not be drawn (not finite, or beyond ±1e300) leave gaps.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/element.h"
#include "report/tone.h"

namespace foreload {

inline constexpr double kChartWidth = 440;
inline constexpr double kChartFont = 12;
inline constexpr std::size_t kMostSpots = 60;  // places with a read-out

struct ChartPoint {
  double x = 0;
  double y = 0;
  std::string says;  // read out when the pointer is near; only of the first line
};

struct ChartLine {
  std::string name;
  Tone tone = Tone::kFirst;
  std::vector<ChartPoint> points;
};

struct AreaPoint {
  double x = 0;
  double low = 0;
  double high = 0;
};

struct ChartArea {
  std::string name;
  Tone tone = Tone::kFirst;
  std::vector<AreaPoint> points;
};

struct ChartMark {
  double x = 0;
  std::string label;
  bool is_here = false;  // a ring, for where one is; otherwise a diamond, for a place worth knowing
};

struct LineChart {
  std::string says;     // what the picture shows, for those who can not see it
  std::string x_title;  // below the axis
  std::vector<ChartArea> areas;
  std::vector<ChartLine> lines;  // marks stand on the first
  std::vector<ChartMark> marks;
};

// The y-axis begins at 0 or below, and ends at a round number.
Element line_chart(const LineChart& chart);
Element legend_of(const LineChart& chart);  // of what is drawn

}  // namespace foreload
