#include "base/text.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace foreload {

namespace {

struct Unit {
  std::string_view name;
  std::uint64_t size;
};

constexpr std::array<Unit, 16> kByteUnits{{
    {"", 1},
    {"b", 1},
    {"k", 1'000},
    {"kb", 1'000},
    {"ki", 1ull << 10},
    {"kib", 1ull << 10},
    {"m", 1'000'000},
    {"mb", 1'000'000},
    {"mi", 1ull << 20},
    {"mib", 1ull << 20},
    {"g", 1'000'000'000},
    {"gb", 1'000'000'000},
    {"gi", 1ull << 30},
    {"gib", 1ull << 30},
    {"tb", 1'000'000'000'000},
    {"tib", 1ull << 40},
}};

constexpr std::array<Unit, 6> kTimeUnits{{
    {"ns", 1},
    {"us", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"min", 60'000'000'000},
    {"h", 3'600'000'000'000},
}};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::optional<std::uint64_t> unit_size(std::string_view name, std::span<const Unit> units) {
  std::string wanted;
  for (const char c : name) wanted += lower(c);
  for (const Unit& unit : units) {
    if (unit.name == wanted) return unit.size;
  }
  return std::nullopt;
}

// Whole numbers stay exact; only a number with a point goes through double.
std::optional<std::uint64_t> multiplied(std::string_view number, std::uint64_t unit) {
  const char* const end = number.data() + number.size();
  if (number.find('.') == std::string_view::npos) {
    std::uint64_t value = 0;
    std::uint64_t product = 0;
    const auto [stop, error] = std::from_chars(number.data(), end, value);
    if (error != std::errc() || stop != end || __builtin_mul_overflow(value, unit, &product)) return std::nullopt;
    return product;
  }
  double value = 0;
  const auto [stop, error] = std::from_chars(number.data(), end, value, std::chars_format::fixed);
  if (error != std::errc() || stop != end) return std::nullopt;
  const double product = std::round(value * static_cast<double>(unit));
  if (product >= 0x1p64) return std::nullopt;
  return static_cast<std::uint64_t>(product);
}

// A number, optional blanks, a unit.
std::optional<std::uint64_t> parse_quantity(std::string_view text, std::span<const Unit> units) {
  text = trimmed(text, " ");
  std::size_t digits = 0;
  while (digits < text.size() && (is_digit(text[digits]) || text[digits] == '.')) ++digits;
  if (digits == 0 || !is_digit(text[0])) return std::nullopt;
  const auto unit = unit_size(trimmed(text.substr(digits), " "), units);
  if (!unit) return std::nullopt;
  return multiplied(text.substr(0, digits), *unit);
}

// One decimal, unless it would be a zero: "1.4", "2".
std::string short_number(double value) {
  const double rounded = std::round(value * 10) / 10;
  return rounded == std::floor(rounded) ? fmt::format("{:.0f}", rounded) : fmt::format("{:.1f}", rounded);
}

}  // namespace

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

Result<Bytes> parse_bytes(std::string_view text) {
  if (const auto bytes = parse_quantity(text, kByteUnits)) return *bytes;
  return Error{Code::kInvalid,
               fmt::format("\"{}\" is not a size; write it like 8GiB, 100MB, 64k or a number of bytes", text)};
}

std::string format_bytes(Bytes bytes) {
  constexpr std::array<const char*, 7> kNames{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 1023.95 and more would be shown as 1024.
  while (value >= 1023.95 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  return short_number(value) + " " + kNames[unit];
}

Result<Duration> parse_duration(std::string_view text) {
  if (trimmed(text, " ") == "0") return Duration{0};
  const auto ns = parse_quantity(text, kTimeUnits);
  if (ns && *ns <= static_cast<std::uint64_t>(std::numeric_limits<Duration::rep>::max())) {
    return Duration{static_cast<Duration::rep>(*ns)};
  }
  return Error{Code::kInvalid, fmt::format("\"{}\" is not a duration; write it like 5ms, 2s or 100us", text)};
}

std::string format_duration(Duration duration) {
  const double ns = std::abs(static_cast<double>(duration.count()));
  const char* const sign = duration.count() < 0 ? "-" : "";
  std::string text;
  if (ns < 999.5) {
    text = short_number(ns) + " ns";
  } else if (ns < 999.95e3) {
    text = short_number(ns / 1e3) + " us";
  } else if (ns < 999.95e6) {
    text = short_number(ns / 1e6) + " ms";
  } else if (ns < 119.95e9) {
    text = short_number(ns / 1e9) + " s";
  } else if (ns < 119.95 * 60e9) {
    text = short_number(ns / 60e9) + " min";
  } else {
    text = short_number(ns / 3600e9) + " h";
  }
  return sign + text;
}

std::string format_count(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t place = text.size(); place > 3;) {
    place -= 3;
    text.insert(place, 1, ',');
  }
  return text;
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", format_count(count), one)
                      : fmt::format("{} {}", format_count(count), many);
}

}  // namespace foreload
