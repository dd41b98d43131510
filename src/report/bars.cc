#include "report/bars.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/scale.h"

namespace foreload {

namespace {

double counted_size(const BarPart& part) {
  return is_drawable(part.size) ? std::max(part.size, 0.0) : 0;
}

std::string hundredths(double share) {
  return fmt::format("{:.3f}%", 100 * std::clamp(share, 0.0, 1.0));
}

double sum_of(const std::vector<BarPart>& parts) {
  double sum = 0;
  for (const BarPart& part : parts) sum += counted_size(part);
  return sum;
}

Element drawn_part(const BarPart& part, double from, double to) {
  Element area("rect");
  area.set("class", fmt::format("area {}", tone_class(part.tone))).set("x", hundredths(from));
  return area.set("y", 0.0).set("width", hundredths(to - from)).set("height", "100%");
}

// The parts as they are laid on [0, 1].
Element drawn_parts(const std::vector<BarPart>& parts, double whole, const std::string& says) {
  Element picture("svg");
  picture.set("class", "bar").set("role", "img").set("aria-label", says);
  double from = 0;
  for (const BarPart& part : parts) {
    const double to = whole > 0 ? std::min(from + counted_size(part) / whole, 1.0) : from;
    if (to > from) picture.add(drawn_part(part, from, to));
    from = to;
  }
  return picture;
}

double largest_sum(const std::vector<BarRow>& rows) {
  double largest = 0;
  for (const BarRow& row : rows) largest = std::max(largest, sum_of(row.parts));
  return largest;
}

}  // namespace

Element stacked_bar(const std::vector<BarPart>& parts, double whole, const std::string& says) {
  Element group("div");
  group.set("class", "stacked");
  return group.add(drawn_parts(parts, whole, says));
}

Element bar_rows(const std::vector<BarRow>& rows) {
  const double whole = largest_sum(rows);
  Element list("ul");
  list.set("class", "bar-rows");
  for (const BarRow& row : rows) {
    Element item("li");
    if (row.is_marked) item.set("class", "marked");
    Element name("span");
    name.set("class", "row-name").text(row.label);
    if (!row.mark.empty()) name.add(Element("em").text(row.mark));
    Element figures("span");
    figures.set("class", "row-numbers");
    for (const Number& number : row.numbers) figures.add(number_element(number));
    list.add(item.add(name).add(drawn_parts(row.parts, whole, row.label)).add(figures));
  }
  return list;
}

Element bar_groups(const std::vector<BarGroup>& groups) {
  Element all("div");
  all.set("class", "bar-groups");
  for (const BarGroup& group : groups) {
    Element one("div");
    all.add(one.add(Element("h3").text(group.title)).add(bar_rows(group.rows)));
  }
  return all;
}

}  // namespace foreload
