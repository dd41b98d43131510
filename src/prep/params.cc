#include "prep/params.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace foreload {

namespace {

bool inside(double value, Range range) {
  return value >= range.lowest && value <= range.highest;  // false for NaN
}

std::string describe(std::string_view what, Range range) {
  return fmt::format("{} from {} to {}", what, range.lowest, range.highest);
}

bool is_side(double value) {
  return inside(value, {1, kMaxSide}) && value == std::floor(value);
}

}  // namespace

const Param* find_param(const Transform& transform, std::string_view name) {
  for (const auto& [key, value] : transform.params) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::string param_text(const Param& param) {
  if (const auto* number = std::get_if<double>(&param)) return fmt::format("{}", *number);
  if (const auto* word = std::get_if<std::string>(&param)) return *word;
  const auto& list = std::get<std::vector<double>>(param);
  std::string text = list.size() < 2 ? ":" : "";
  for (std::size_t i = list.size(); i-- > 0;) text.insert(0, fmt::format("{}{}", i > 0 ? ":" : "", list[i]));
  return text;
}

Error param_error(const Transform& transform, std::string_view name, std::string_view wanted) {
  const Param* given = find_param(transform, name);
  return {Code::kInvalid, fmt::format("transform {}: {} is {}; it must be {}", transform.name, name,
                                      given ? param_text(*given) : "missing", wanted)};
}

Result<double> number_param(const Transform& transform, std::string_view name, double fallback, Range range) {
  const Param* param = find_param(transform, name);
  if (!param) return fallback;
  const auto* number = std::get_if<double>(param);
  if (!number || !inside(*number, range)) return param_error(transform, name, describe("a number", range));
  return *number;
}

Result<std::vector<double>> list_param(const Transform& transform, std::string_view name, std::vector<double> fallback,
                                       Range range) {
  const Param* param = find_param(transform, name);
  if (!param) return fallback;
  const auto* list = std::get_if<std::vector<double>>(param);
  bool good = list && list->size() == fallback.size();
  for (std::size_t i = 0; good && i < list->size(); ++i) good = inside((*list)[i], range);
  if (good) return *list;
  return param_error(transform, name, describe(fmt::format("{} numbers, each", fallback.size()), range));
}

Result<SizeParam> size_param(const Transform& transform) {
  const Param* param = find_param(transform, "size");
  const auto* number = param ? std::get_if<double>(param) : nullptr;
  const auto* list = param ? std::get_if<std::vector<double>>(param) : nullptr;
  if (number && is_side(*number)) {
    const auto side = static_cast<std::uint32_t>(*number);
    return SizeParam{{side, side}, true};
  }
  if (list && list->size() == 2 && is_side((*list)[0]) && is_side((*list)[1])) {
    return SizeParam{{static_cast<std::uint32_t>((*list)[1]), static_cast<std::uint32_t>((*list)[0])}, false};
  }
  return param_error(transform, "size", fmt::format("a whole number or height:width, each from 1 to {}", kMaxSide));
}

}  // namespace foreload
