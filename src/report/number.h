// Numbers as people read them, and as a program finds them again in the page.
#pragma once

#include <string>
#include <string_view>

#include "report/element.h"

namespace foreload {

// "1240.5" → "1,240.5".
std::string grouped(std::string digits);
// Three digits or so: "812", "1,240", "41.5", "0.08", "1.2e+18"; "–" for what is no finite number.
std::string short_number(double value);
// A share of one: "41 %", "0.3 %"; "–" as above.
std::string percent(double share);
// A gain on what there was: "+31 %", "12 times as fast", "no gain".
std::string gain_text(double gain);
// 1,240 with all its digits when it is whole; otherwise as short_number.
std::string whole_number(double value);

// A number of a document.
struct Number {
  double value = 0;
  std::string shown;
  std::string from;  // where it stands in the document, as a JSON pointer; empty: nowhere
};

// <data value="0.41" data-json="/prediction/busy">41 %</data>
Element number_element(const Number& number);

}  // namespace foreload
