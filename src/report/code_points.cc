#include "report/code_points.h"

#include <cstdint>
#include <optional>

namespace foreload {

namespace {

constexpr char32_t kReplacement = 0xFFFD;
constexpr char32_t kEllipsis = 0x2026;

struct Lead {
  std::size_t length;
  char32_t bits;
  char32_t least;  // anything smaller would have had a shorter form
};

std::optional<Lead> lead_of(unsigned char byte) {
  if (byte < 0x80) return Lead{1, byte, 0};
  if (byte >= 0xC2 && byte <= 0xDF) return Lead{2, byte & 0x1Fu, 0x80};
  if (byte >= 0xE0 && byte <= 0xEF) return Lead{3, byte & 0x0Fu, 0x800};
  if (byte >= 0xF0 && byte <= 0xF4) return Lead{4, byte & 0x07u, 0x10000};
  return std::nullopt;
}

// The code point at the beginning of `text` and its length, if there is a valid one.
std::optional<Lead> first_of(std::string_view text) {
  const auto lead = lead_of(static_cast<unsigned char>(text[0]));
  if (!lead || text.size() < lead->length) return std::nullopt;
  char32_t value = lead->bits;
  for (std::size_t i = 1; i < lead->length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return std::nullopt;
    value = value << 6 | (byte & 0x3Fu);
  }
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < lead->least || value > 0x10FFFF || surrogate) return std::nullopt;
  return Lead{lead->length, value, 0};
}

char tail(char32_t c, unsigned shift) {
  return static_cast<char>(0x80 | (c >> shift & 0x3F));
}

}  // namespace

std::u32string code_points(std::string_view text) {
  std::u32string points;
  points.reserve(text.size());
  while (!text.empty()) {
    const auto first = first_of(text);
    points += first ? first->bits : kReplacement;
    text.remove_prefix(first ? first->length : 1);
  }
  return points;
}

void append_code_point(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += {static_cast<char>(0xC0 | c >> 6), tail(c, 0)};
  } else if (c < 0x10000) {
    out += {static_cast<char>(0xE0 | c >> 12), tail(c, 6), tail(c, 0)};
  } else {
    out += {static_cast<char>(0xF0 | c >> 18), tail(c, 12), tail(c, 6), tail(c, 0)};
  }
}

std::string utf8(std::u32string_view text) {
  std::string out;
  for (const char32_t c : text) append_code_point(out, c);
  return out;
}

std::u32string shortened(std::u32string text, std::size_t longest) {
  if (text.size() <= longest) return text;
  if (longest == 0) return {};
  const std::size_t before = longest / 2;
  const std::size_t after = longest - before - 1;
  return text.substr(0, before) + kEllipsis + text.substr(text.size() - after);
}

}  // namespace foreload
