// Scale: values to places in a picture, and ticks at round numbers.
#pragma once

#include <string>
#include <vector>

namespace foreload {

// Whether a value can be drawn: finite, and small enough that differences are finite, too.
bool is_drawable(double value);

struct Tick {
  double value = 0;
  std::string label;
};

// Multiples of 1, 2 or 5 times a power of ten from the first that is ≥ `low` to the last that is ≤ `high`; no more than
// `at_most`. Labels have the same number of decimals; thousands and more are counted ("20 k", "1.5 M").
// REQUIRES: drawable, low <= high, at_most >= 2.
std::vector<Tick> round_ticks(double low, double high, unsigned at_most);

class Scale {
 public:
  // `low` is at place `first`, `high` at `last`. REQUIRES: drawable, low <= high; where they are equal, the scale is
  // widened around them.
  Scale(double low, double high, double first, double last);

  double at(double value) const;
  double low() const { return low_; }
  double high() const { return high_; }

  // As many round ticks as fit with their labels, of this size and centred: beside each other between 0 and `width`, or
  // above each other.
  std::vector<Tick> ticks_across(double font_size, double width) const;
  std::vector<Tick> ticks_up(double font_size) const;

 private:
  double low_;
  double high_;
  double first_;
  double last_;
};

}  // namespace foreload
