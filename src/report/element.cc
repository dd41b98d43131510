#include "report/element.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "report/code_points.h"

namespace foreload {

namespace {

constexpr char32_t kReplacement = 0xFFFD;
constexpr char32_t kControlPictures = 0x2400;
constexpr char32_t kPictureOfDelete = 0x2421;

bool turns_direction(char32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

bool is_no_character(char32_t c) {
  return (c >= 0x80 && c <= 0x9F) || (c >= 0xFDD0 && c <= 0xFDEF) || (c & 0xFFFE) == 0xFFFE;
}

// What is shown in the place of `c`.
char32_t visible(char32_t c) {
  if (c < 0x20) return kControlPictures + c;
  if (c == 0x7F) return kPictureOfDelete;
  return turns_direction(c) || is_no_character(c) ? kReplacement : c;
}

void append_escaped(std::string& out, char32_t c) {
  switch (c) {
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '&':
      out += "&amp;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      append_code_point(out, c);
  }
}

}  // namespace

std::string escaped(std::string_view text, std::size_t longest) {
  std::string out;
  out.reserve(std::min(text.size(), 4 * longest));
  for (const char32_t c : shortened(code_points(text), longest)) append_escaped(out, visible(c));
  return out;
}

Element& Element::set(std::string_view name, std::string_view value, std::size_t longest) {
  attributes_ += fmt::format(" {}=\"{}\"", name, escaped(value, longest));
  return *this;
}

Element& Element::set(std::string_view name, double place) {
  const double rounded = std::isfinite(place) ? std::round(place * 100) / 100 : 0;
  attributes_ += fmt::format(" {}=\"{}\"", name, rounded == 0 ? 0 : rounded);
  return *this;
}

Element& Element::text(std::string_view text, std::size_t longest) {
  inside_ += escaped(text, longest);
  return *this;
}

Element& Element::lines(std::string_view text, std::size_t longest) {
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    if (start > 0) inside_ += '\n';
    inside_ += escaped(text.substr(start, end - start), longest);
    start = end + 1;
  }
  return *this;
}

Element& Element::add(const Element& child) {
  inside_ += child.to_string();
  return *this;
}

std::string Element::to_string() const {
  return fmt::format("<{}{}>{}</{}>", tag_, attributes_, inside_, tag_);
}

}  // namespace foreload
