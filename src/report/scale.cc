#include "report/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "report/number.h"
#include "report/text_width.h"

namespace foreload {

namespace {

constexpr double kLargest = 1e300;
constexpr unsigned kMostTicks = 8;
constexpr double kEpsilon = 1e-9;  // of a step: what rounding may do

// 10^exponent, as the literal would be.
double power_of_ten(int exponent) {
  return std::strtod(fmt::format("1e{}", exponent).c_str(), nullptr);
}

struct Step {
  unsigned factor;  // 1, 2 or 5
  int exponent;
  double size() const { return factor * power_of_ten(exponent); }
};

Step next(Step step) {
  switch (step.factor) {
    case 1:
      return {2, step.exponent};
    case 2:
      return {5, step.exponent};
    default:
      return {1, step.exponent + 1};
  }
}

double first_multiple(double low, double size) {
  return std::ceil(low / size - kEpsilon);
}

double count_of(double low, double high, double size) {
  return std::floor(high / size + kEpsilon) - first_multiple(low, size) + 1;
}

// The smallest with no more than `at_most` multiples.
Step step_for(double low, double high, unsigned at_most) {
  const double span = high - low;
  Step step{1, std::max(-300, static_cast<int>(std::floor(std::log10(span / at_most))) - 1)};
  while (count_of(low, high, step.size()) > at_most) step = next(step);
  return step;
}

struct Count {
  int exponent;
  const char* letter;
};

// By what the labels of an axis up to `largest` are counted.
Count count_for(double largest) {
  constexpr std::array<Count, 5> kCounts{{{0, ""}, {3, "k"}, {6, "M"}, {9, "G"}, {12, "T"}}};
  Count chosen = kCounts[0];
  for (const Count& count : kCounts) {
    if (count.exponent > 0 && largest >= 10 * power_of_ten(count.exponent)) chosen = count;
  }
  return chosen;
}

std::string label_of(double value, Step step, double largest) {
  if (value == 0) return "0";
  if (largest >= 1e15 || step.exponent < -4) return fmt::format("{:.6g}", value);
  const Count count = count_for(largest);
  const int decimals = std::max(0, count.exponent - step.exponent);
  const std::string digits = grouped(fmt::format("{:.{}f}", std::abs(value) / power_of_ten(count.exponent), decimals));
  return fmt::format("{}{}{}{}", value < 0 ? "−" : "", digits, *count.letter == '\0' ? "" : "\u00A0", count.letter);
}

}  // namespace

bool is_drawable(double value) {
  return std::isfinite(value) && std::abs(value) <= kLargest;
}

std::vector<Tick> round_ticks(double low, double high, unsigned at_most) {
  if (!(high > low)) return {{low, label_of(low, {1, 0}, std::abs(low))}};
  const Step step = step_for(low, high, at_most);
  const double size = step.size();
  const double largest = std::max(std::abs(low), std::abs(high));
  const double first = first_multiple(low, size);
  std::vector<Tick> ticks;
  for (double i = 0; i < count_of(low, high, size); ++i) {
    const double value = (first + i) * size;
    ticks.push_back({value, label_of(value, step, largest)});
  }
  return ticks;
}

Scale::Scale(double low, double high, double first, double last) : low_(low), high_(high), first_(first), last_(last) {
  // A width that is lost in the rounding of the values is none.
  const double least = std::max(std::abs(low), std::abs(high)) * 1e-9;
  if (high - low > least && high - low > 1e-290) return;
  const double room = std::max({std::abs(low) / 2, least, low == 0 ? 1.0 : 1e-290});
  low_ = low - room;
  high_ = high + room;
}

double Scale::at(double value) const {
  return first_ + (value - low_) / (high_ - low_) * (last_ - first_);
}

std::vector<Tick> Scale::ticks_across(double font_size, double width) const {
  std::vector<Tick> ticks;
  for (unsigned most = kMostTicks; most >= 2; --most) {
    ticks = round_ticks(low_, high_, most);
    double free = 0;  // where the next label may begin
    for (const Tick& tick : ticks) {
      const double half = text_width(tick.label, font_size) / 2;
      const bool fits = at(tick.value) - half >= free && at(tick.value) + half <= width;
      free = fits ? at(tick.value) + half + font_size / 2 : width;
    }
    if (free < width + font_size / 2 && free != width) return ticks;
  }
  ticks.resize(std::min<std::size_t>(ticks.size(), 1));
  return ticks;
}

std::vector<Tick> Scale::ticks_up(double font_size) const {
  const double room = std::abs(last_ - first_) / (1.6 * font_size);
  return round_ticks(low_, high_, std::clamp(static_cast<unsigned>(room), 2u, 6u));
}

}  // namespace foreload
