#include "number_flag.h"

#include <fmt/core.h>

#include <charconv>

#include "source/warnings.h"

namespace foreload {

std::string check_number(std::string& text, const NumberRange& range) {
  constexpr std::size_t kLongestShown = 40;
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (problem == std::errc() && stop == end && number >= range.least && number <= range.most) {
    text = std::to_string(number);
    return {};
  }
  return fmt::format("\"{}\" is not a whole number from {} to {}", printable(text, kLongestShown), range.least,
                     range.most);
}

}  // namespace foreload
