#include "store/content_range.h"

#include <charconv>
#include <system_error>

namespace foreload {
namespace {

// Takes a number and the character behind it off the front of `text`; '\0' stands for the end.
std::optional<Bytes> take_number(std::string_view& text, char behind) {
  Bytes number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  if (behind == '\0') return text.empty() ? std::optional(number) : std::nullopt;
  if (!text.starts_with(behind)) return std::nullopt;
  text.remove_prefix(1);
  return number;
}

}  // namespace

std::optional<ContentRange> parse_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const auto first = take_number(text, '-');
  const auto last = first ? take_number(text, '/') : std::nullopt;
  const auto size = last ? take_number(text, '\0') : std::nullopt;
  if (!size || *first > *last || *last >= *size) return std::nullopt;
  return ContentRange{*first, *last, *size};
}

}  // namespace foreload
