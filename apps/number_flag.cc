#include "number_flag.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "source/warnings.h"

namespace foreload {

std::string check_number(std::string& text, const NumberRange& range) {
  constexpr std::size_t kLongestShown = 40;
  text.erase(0, std::min(text.find_first_not_of('0'), text.empty() ? 0 : text.size() - 1));
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  const bool is_right = problem == std::errc() && stop == end && number >= range.least && number <= range.most;
  if (is_right) return {};
  return fmt::format("\"{}\" is not a whole number from {} to {}", printable(text, kLongestShown), range.least,
                     range.most);
}

}  // namespace foreload
