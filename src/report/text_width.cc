#include "report/text_width.h"

#include "report/code_points.h"

namespace foreload {

namespace {

// In font sizes.
double width_of(char32_t c) {
  constexpr std::u32string_view kNarrow = U" !'.,:;ijl|()[]/-\u00A0";
  constexpr std::u32string_view kWide = U"mwMW@%\u2026+<>=~±→≥≤×−–—";
  if (kNarrow.find(c) != std::u32string_view::npos) return 0.46;
  if (kWide.find(c) != std::u32string_view::npos) return 1.05;
  if (c >= 'A' && c <= 'Z') return 0.8;
  return c < 0x250 ? 0.66 : 1.2;
}

double width_of(const std::u32string& text) {
  double width = 0;
  for (const char32_t c : text) width += width_of(c);
  return width;
}

}  // namespace

double text_width(std::string_view text, double font_size) {
  return width_of(code_points(text)) * font_size;
}

std::string fitted(std::string_view text, double font_size, double width) {
  const std::u32string points = code_points(text);
  if (width_of(points) * font_size <= width) return utf8(points);
  // Every character has at least the narrow width, so no more than these can fit.
  for (auto longest = static_cast<std::size_t>(width > 0 ? width / font_size / 0.46 : 0); longest > 0; --longest) {
    const std::u32string shorter = shortened(points, longest);
    if (width_of(shorter) * font_size <= width) return utf8(shorter);
  }
  return {};
}

}  // namespace foreload
