// Flags that are whole numbers. CLI11 alone takes "-1" as the largest number and cuts off what is too large.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

namespace foreload {

struct NumberRange {
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
};

// Nothing if `text` is digits and in the range, otherwise what is wrong. Takes leading zeros away, because CLI11 would
// read octal numbers.
std::string check_number(std::string& text, const NumberRange& range);

template <typename T>
CLI::Option* add_number(CLI::App& command, const std::string& flag, T& value, const std::string& purpose,
                        NumberRange range = {}) {
  static_assert(std::is_unsigned_v<T>);
  if (range.most > std::numeric_limits<T>::max()) range.most = std::numeric_limits<T>::max();
  const auto check = [range](std::string& text) { return check_number(text, range); };
  return command.add_option(flag, value, purpose)->transform(CLI::Validator(check, ""))->capture_default_str();
}

// One that has no default.
template <typename T>
CLI::Option* add_number(CLI::App& command, const std::string& flag, std::optional<T>& value,
                        const std::string& purpose) {
  static_assert(std::is_unsigned_v<T>);
  const auto check = [](std::string& text) { return check_number(text, {.most = std::numeric_limits<T>::max()}); };
  return command.add_option(flag, value, purpose)->transform(CLI::Validator(check, ""));
}

}  // namespace foreload
