// The picture, from above:
//
//   marks       one row each, so that their labels never meet; the leftmost stands highest, and labels stand to the
//   right
//               of their stalks, so that no stalk goes through the label of another
//   plot        with a tick's label to the left of each horizontal line
//   x ticks
//   bottom row  the title of the x-axis at the left, the read-out of the spot under the pointer at the right
//
// A read-out needs no script: every spot is a column of the plot, whose text the style sheet shows while it is pointed
// at.
#include "report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "report/scale.h"
#include "report/text_width.h"

namespace foreload {

namespace {

constexpr double kPlotHeight = 168;
constexpr double kRow = 18;
constexpr double kGap = 6;
constexpr double kTop = 8;  // over the plot: half of the highest tick's label
constexpr double kWidestTick = 84;
constexpr double kRight = 14;  // of the plot

bool can_be_drawn(const ChartPoint& point) {
  return is_drawable(point.x) && is_drawable(point.y);
}

bool can_be_drawn(const AreaPoint& point) {
  return is_drawable(point.x) && is_drawable(point.low) && is_drawable(point.high);
}

template <typename Point>
bool has_any(const std::vector<Point>& points) {
  return std::any_of(points.begin(), points.end(), [](const Point& point) { return can_be_drawn(point); });
}

struct Range {
  double low = 0;
  double high = 0;
  bool is_empty = true;

  void add(double value) {
    low = is_empty ? value : std::min(low, value);
    high = is_empty ? value : std::max(high, value);
    is_empty = false;
  }
};

struct Ranges {
  Range x;
  Range y;
};

Ranges ranges_of(const LineChart& chart) {
  Ranges ranges;
  ranges.y.add(0);
  for (const ChartLine& line : chart.lines) {
    for (const ChartPoint& point : line.points) {
      if (!can_be_drawn(point)) continue;
      ranges.x.add(point.x);
      ranges.y.add(point.y);
    }
  }
  for (const ChartArea& area : chart.areas) {
    for (const AreaPoint& point : area.points) {
      if (!can_be_drawn(point)) continue;
      ranges.x.add(point.x);
      ranges.y.add(point.low);
      ranges.y.add(point.high);
    }
  }
  for (const ChartMark& mark : chart.marks) {
    if (is_drawable(mark.x) && !ranges.x.is_empty) ranges.x.add(mark.x);
  }
  return ranges;
}

// Both ends moved outwards to multiples of the ticks' step.
Range with_round_ends(Range range) {
  if (range.low == range.high) range.high += 1;  // nothing but 0
  const auto ticks = round_ticks(range.low, range.high, 6);
  if (ticks.size() < 2) return range;
  const double step = ticks[1].value - ticks[0].value;
  range.low = std::min(range.low, std::floor(range.low / step + 1e-9) * step);
  range.high = std::max(range.high, std::ceil(range.high / step - 1e-9) * step);
  return range;
}

// Where things stand.
struct Layout {
  double top;   // of the plot
  double left;  // of the plot
  Scale x;
  Scale y;

  double right() const { return kChartWidth - kRight; }
  double bottom() const { return top + kPlotHeight; }
  double height() const { return bottom() + 2 * kRow + kGap; }
};

double widest(const std::vector<Tick>& ticks) {
  double width = 0;
  for (const Tick& tick : ticks) width = std::max(width, text_width(tick.label, kChartFont));
  return std::min(width, kWidestTick);
}

Layout layout_of(const Ranges& ranges, std::size_t marks) {
  const Range y = with_round_ends(ranges.y);
  const double top = static_cast<double>(marks) * kRow + kTop;
  const Scale up(y.low, y.high, top + kPlotHeight, top);
  const double left = std::max(widest(up.ticks_up(kChartFont)) + kGap, 24.0);
  return {top, left, Scale(ranges.x.low, ranges.x.high, left, kChartWidth - kRight), up};
}

Element label(double x, double y, std::string_view anchor, std::string_view text) {
  Element element("text");
  element.set("x", x).set("y", y).set("text-anchor", anchor).text(text);
  return element;
}

Element straight(std::string_view kind, double x1, double y1, double x2, double y2) {
  Element element("line");
  return element.set("class", kind).set("x1", x1).set("y1", y1).set("x2", x2).set("y2", y2);
}

Element axes(const Layout& layout) {
  Element group("g");
  group.set("class", "axes");
  for (const Tick& tick : layout.y.ticks_up(kChartFont)) {
    const double y = layout.y.at(tick.value);
    group.add(straight(tick.value == 0 ? "zero" : "grid", layout.left, y, layout.right(), y));
    group.add(label(layout.left - kGap, y + kChartFont / 3, "end", fitted(tick.label, kChartFont, kWidestTick)));
  }
  for (const Tick& tick : layout.x.ticks_across(kChartFont, kChartWidth)) {
    const std::string text = fitted(tick.label, kChartFont, kChartWidth);
    const double half = text_width(text, kChartFont) / 2;
    const double x = layout.x.at(tick.value);
    group.add(straight("tick", x, layout.bottom(), x, layout.bottom() + 4));
    group.add(label(std::clamp(x, half, kChartWidth - half), layout.bottom() + kRow, "middle", text));
  }
  return group;
}

void append_place(std::string& path, char command, const Layout& layout, double x, double y) {
  path += fmt::format("{}{:.2f} {:.2f}", command, layout.x.at(x), layout.y.at(y));
}

// One closed outline for every run of points without a gap.
Element drawn_area(const ChartArea& area, const Layout& layout) {
  std::string path;
  const auto& points = area.points;
  for (std::size_t first = 0; first < points.size();) {
    std::size_t end = first;
    while (end < points.size() && can_be_drawn(points[end])) ++end;
    for (std::size_t i = first; i < end; ++i)
      append_place(path, i == first ? 'M' : 'L', layout, points[i].x, points[i].high);
    for (std::size_t i = end; i > first; --i) append_place(path, 'L', layout, points[i - 1].x, points[i - 1].low);
    if (end > first) path += 'Z';
    first = end + 1;
  }
  Element element("path");
  return element.set("class", fmt::format("area {}", tone_class(area.tone))).set("d", path, path.size());
}

Element drawn_line(const ChartLine& line, const Layout& layout) {
  std::string path;
  Element group("g");
  bool after_gap = true;
  for (std::size_t i = 0; i < line.points.size(); ++i) {
    const ChartPoint& point = line.points[i];
    const bool drawn = can_be_drawn(point);
    if (drawn) append_place(path, after_gap ? 'M' : 'L', layout, point.x, point.y);
    // What has no neighbour would not be seen as a line.
    const bool alone = after_gap && (i + 1 == line.points.size() || !can_be_drawn(line.points[i + 1]));
    if (drawn && alone) {
      Element dot("circle");
      dot.set("class", fmt::format("dot {}", tone_class(line.tone))).set("r", 3.5);
      group.add(dot.set("cx", layout.x.at(point.x)).set("cy", layout.y.at(point.y)));
    }
    after_gap = !drawn;
  }
  Element element("path");
  element.set("class", fmt::format("line {}", tone_class(line.tone))).set("d", path, path.size());
  return group.add(element);
}

// The height of the line at `x`, between the two points around it.
std::optional<double> height_at(const ChartLine& line, double x) {
  std::optional<ChartPoint> before;
  for (const ChartPoint& point : line.points) {
    if (!can_be_drawn(point)) continue;
    if (point.x == x) return point.y;
    if (before && before->x < x && x < point.x) {
      return before->y + (point.y - before->y) * ((x - before->x) / (point.x - before->x));
    }
    before = point;
  }
  return std::nullopt;
}

Element ring(double x, double y) {
  Element element("circle");
  return element.set("class", "here").set("cx", x).set("cy", y).set("r", 5.5);
}

Element diamond(double x, double y) {
  Element element("path");
  return element.set("class", "knee").set("d", fmt::format("M{:.2f} {:.2f}l6 6l-6 6l-6 -6Z", x, y - 6));
}

Element drawn_mark(const ChartMark& mark, const Layout& layout, const LineChart& chart, std::size_t row) {
  Element group("g");
  group.set("class", "mark");
  const double x = layout.x.at(mark.x);
  const double y = (static_cast<double>(row) + 0.75) * kRow;
  group.add(straight(mark.is_here ? "stalk dashed" : "stalk", x, y - kChartFont + 2, x, layout.bottom()));
  const std::string text = fitted(mark.label, kChartFont, kChartWidth - 2 * kGap);
  const double width = text_width(text, kChartFont);
  const bool right = x + kGap + width <= kChartWidth;
  const double end = right ? x + kGap : std::max(x - kGap, width);
  group.add(label(end, y, right ? "start" : "end", text));
  const auto height = chart.lines.empty() ? std::nullopt : height_at(chart.lines[0], mark.x);
  if (height) group.add(mark.is_here ? ring(x, layout.y.at(*height)) : diamond(x, layout.y.at(*height)));
  return group;
}

std::vector<ChartMark> marks_from_left(const LineChart& chart) {
  std::vector<ChartMark> marks;
  for (const ChartMark& mark : chart.marks) {
    if (is_drawable(mark.x)) marks.push_back(mark);
  }
  std::stable_sort(marks.begin(), marks.end(), [](const ChartMark& a, const ChartMark& b) { return a.x < b.x; });
  return marks;
}

// The points that get a read-out: all, or evenly chosen ones.
std::vector<ChartPoint> spots_of(const LineChart& chart) {
  std::vector<ChartPoint> points;
  if (chart.lines.empty()) return points;
  for (const ChartPoint& point : chart.lines[0].points) {
    if (can_be_drawn(point) && !point.says.empty()) points.push_back(point);
  }
  std::sort(points.begin(), points.end(), [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
  if (points.size() <= kMostSpots) return points;
  std::vector<ChartPoint> chosen;
  for (std::size_t i = 0; i < kMostSpots; ++i) chosen.push_back(points[i * (points.size() - 1) / (kMostSpots - 1)]);
  return chosen;
}

Element drawn_spot(const ChartPoint& spot, double from, double to, const Layout& layout) {
  const double x = layout.x.at(spot.x);
  Element column("rect");
  column.set("class", "column").set("x", from).set("y", layout.top).set("width", std::max(to - from, 0.0));
  column.set("height", kPlotHeight);
  Element dot("circle");
  dot.set("cx", x).set("cy", layout.y.at(spot.y)).set("r", 3.5);
  Element group("g");
  group.set("class", "spot").add(column).add(straight("hair", x, layout.top, x, layout.bottom())).add(dot);
  return group.add(label(layout.right(), layout.height() - kGap, "end", spot.says));
}

struct Spots {
  Element drawn{"g"};
  double widest = 0;  // read-out
};

Spots drawn_spots(const LineChart& chart, const Layout& layout) {
  Spots spots;
  auto points = spots_of(chart);
  for (ChartPoint& point : points) {
    point.says = fitted(point.says, kChartFont, layout.right());
    spots.widest = std::max(spots.widest, text_width(point.says, kChartFont));
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double x = layout.x.at(points[i].x);
    const double from = i == 0 ? layout.left : (layout.x.at(points[i - 1].x) + x) / 2;
    const double to = i + 1 == points.size() ? layout.right() : (layout.x.at(points[i + 1].x) + x) / 2;
    spots.drawn.add(drawn_spot(points[i], from, to, layout));
  }
  return spots;
}

}  // namespace

Element line_chart(const LineChart& chart) {
  const Ranges ranges = ranges_of(chart);
  if (ranges.x.is_empty) return Element("p").set("class", "note").text("There is no point to draw.");
  const auto marks = marks_from_left(chart);
  const Layout layout = layout_of(ranges, marks.size());
  Element picture("svg");
  picture.set("class", "chart").set("viewBox", fmt::format("0 0 {} {}", kChartWidth, layout.height()));
  picture.set("role", "img").set("aria-label", chart.says);
  for (const ChartArea& area : chart.areas) picture.add(drawn_area(area, layout));
  picture.add(axes(layout));
  for (const ChartLine& line : chart.lines) picture.add(drawn_line(line, layout));
  const Spots spots = drawn_spots(chart, layout);
  for (std::size_t i = 0; i < marks.size(); ++i) picture.add(drawn_mark(marks[i], layout, chart, i));
  const double room = layout.right() - layout.left - spots.widest - 2 * kGap;
  const std::string title = fitted(chart.x_title, kChartFont, room);
  if (!title.empty()) picture.add(label(layout.left, layout.height() - kGap, "start", title));
  return picture.add(spots.drawn);
}

Element legend_of(const LineChart& chart) {
  std::vector<LegendEntry> entries;
  for (const ChartLine& line : chart.lines) {
    if (has_any(line.points)) entries.push_back({line.name, line.tone, true, {}});
  }
  for (const ChartArea& area : chart.areas) {
    if (has_any(area.points)) entries.push_back({area.name, area.tone, false, {}});
  }
  return legend(entries);
}

}  // namespace foreload
