// Tone: how one kind of thing looks wherever it appears. Every tone has a colour *and* a pattern or dash of its own, so
// that nothing is told by colour alone. The style sheet of the page knows the classes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/element.h"
#include "report/number.h"

namespace foreload {

enum class Tone { kFirst, kSecond, kThird, kFourth, kQuiet };

// "tone-1" … "tone-4", "tone-quiet".
std::string_view tone_class(Tone tone);

struct LegendEntry {
  std::string name;
  Tone tone = Tone::kFirst;
  bool is_line = false;         // a line, or a filled area
  std::vector<Number> numbers;  // said behind the name
};

// A list with a swatch for every entry.
Element legend(const std::vector<LegendEntry>& entries);

}  // namespace foreload
