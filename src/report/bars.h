// Bars as inline SVG that fill the width of their place: parts of a whole, and values beside each other. Their text
// keeps its size on every screen.
#pragma once

#include <string>
#include <vector>

#include "report/element.h"
#include "report/number.h"
#include "report/tone.h"

namespace foreload {

struct BarPart {
  std::string name;
  Tone tone = Tone::kFirst;
  double size = 0;  // in the unit of the whole; what is not finite or negative counts as 0
};

// Parts of `whole` one after the other; what is beyond it is cut off. A whole that is not above 0 makes an empty bar.
Element stacked_bar(const std::vector<BarPart>& parts, double whole, const std::string& says);

struct BarRow {
  std::string label;
  std::vector<BarPart> parts;
  std::vector<Number> numbers;  // at the end of the row
  bool is_marked = false;       // the one that stands out, by `mark`
  std::string mark;             // a word behind the label: "now", "the slowest"
};

// Rows on a common scale: the largest sum of parts fills the width.
Element bar_rows(const std::vector<BarRow>& rows);

// A small heading over rows, each group with its own scale.
struct BarGroup {
  std::string title;
  std::vector<BarRow> rows;
};
Element bar_groups(const std::vector<BarGroup>& groups);

}  // namespace foreload
