#include "report/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace foreload {

namespace {

constexpr const char* kNoNumber = "–";
constexpr const char* kMinus = "−";
constexpr const char* kBlank = "\u00A0";  // that breaks no line

std::string without_zeros(std::string digits) {
  if (digits.find('.') == std::string::npos) return digits;
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

std::string magnitude_text(double magnitude) {
  if (magnitude == 0) return "0";
  if (magnitude >= 1e15 || magnitude < 1e-4) return fmt::format("{:.2g}", magnitude);
  if (magnitude >= 99.95) return grouped(fmt::format("{:.0f}", magnitude));
  if (magnitude >= 9.995) return without_zeros(fmt::format("{:.1f}", magnitude));
  if (magnitude >= 0.9995) return without_zeros(fmt::format("{:.2f}", magnitude));
  return fmt::format("{:.2g}", magnitude);
}

// All and nothing are only said when it is so.
std::string share_digits(double hundredths) {
  if (hundredths > 0 && hundredths < 0.05) return "<0.1";
  if (hundredths > 99 && hundredths < 100) return without_zeros(fmt::format("{:.1f}", std::min(hundredths, 99.9)));
  if (hundredths < 0.95) return without_zeros(fmt::format("{:.1f}", hundredths));
  return magnitude_text(std::round(hundredths));
}

std::string with_sign(double value, const std::string& magnitude) {
  return value < 0 && magnitude != "0" ? kMinus + magnitude : magnitude;
}

}  // namespace

std::string grouped(std::string digits) {
  const std::size_t point = std::min(digits.find('.'), digits.size());
  for (std::size_t place = point; place > 3;) {
    place -= 3;
    digits.insert(place, 1, ',');
  }
  return digits;
}

std::string short_number(double value) {
  return std::isfinite(value) ? with_sign(value, magnitude_text(std::abs(value))) : kNoNumber;
}

std::string whole_number(double value) {
  if (!std::isfinite(value) || std::abs(value) >= 1e15 || value != std::round(value)) return short_number(value);
  return with_sign(value, grouped(fmt::format("{:.0f}", std::abs(value))));
}

std::string percent(double share) {
  if (!std::isfinite(share)) return kNoNumber;
  const double magnitude = 100 * std::abs(share);
  return with_sign(share, share_digits(magnitude)) + kBlank + "%";
}

std::string gain_text(double gain) {
  if (!std::isfinite(gain)) return kNoNumber;
  if (gain >= 9.995) return short_number(gain + 1) + " times as fast";
  if (std::abs(gain) < 0.0005) return "no gain";
  return (gain > 0 ? "+" : "") + percent(gain);
}

Element number_element(const Number& number) {
  Element element("data");
  element.set("value", fmt::format("{}", number.value));
  if (!number.from.empty()) element.set("data-json", number.from);
  return element.text(number.shown);
}

}  // namespace foreload
