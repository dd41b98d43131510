#include "prep/params.h"

#include <fmt/format.h>

#include <algorithm>
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

Result<DType> dtype_param(const Transform& transform) {
  std::string names;
  const Param* param = find_param(transform, "dtype");
  const auto* word = param ? std::get_if<std::string>(param) : nullptr;
  for (const DType dtype : {DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kU32, DType::kI64, DType::kF16,
                            DType::kF32, DType::kF64}) {
    if (word && *word == dtype_name(dtype)) return dtype;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", dtype_name(dtype));
  }
  return param_error(transform, "dtype", fmt::format("one of {}", names));
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

Result<std::vector<double>> ascending_param(const Transform& transform, std::string_view name,
                                            std::vector<double> fallback, Range range) {
  FORELOAD_ASSIGN(std::vector<double> pair, list_param(transform, name, std::move(fallback), range));
  if (pair[0] > pair[1]) return param_error(transform, name, "a smaller and a larger number");
  return pair;
}

Result<std::vector<double>> spread_param(const Transform& transform, std::string_view name, double centre,
                                         Range range) {
  const Param* param = find_param(transform, name);
  if (!param) return std::vector<double>{centre, centre};
  const auto* number = std::get_if<double>(param);
  if (!number) return ascending_param(transform, name, {centre, centre}, range);
  if (!inside(*number, {0, range.highest - centre})) {
    return param_error(transform, name,
                       fmt::format("a number from 0 to {}, or lowest:highest, each from {} to {}",
                                   range.highest - centre, range.lowest, range.highest));
  }
  return std::vector<double>{std::max(centre - *number, range.lowest), centre + *number};
}

Result<std::size_t> word_param(const Transform& transform, std::string_view name, std::vector<const char*> words) {
  const Param* param = find_param(transform, name);
  if (!param) return std::size_t{0};
  const auto* word = std::get_if<std::string>(param);
  for (std::size_t i = 0; word && i < words.size(); ++i) {
    if (*word == words[i]) return i;
  }
  return param_error(transform, name, fmt::format("one of {}", fmt::join(words, ", ")));
}

Result<std::array<double, 3>> channels_param(const Transform& transform, std::string_view name, double fallback,
                                             Range range) {
  const Param* param = find_param(transform, name);
  std::vector<double> values(3, fallback);
  if (param && std::holds_alternative<std::vector<double>>(*param)) {
    FORELOAD_ASSIGN(values, list_param(transform, name, values, range));
  } else {
    FORELOAD_ASSIGN(const double value, number_param(transform, name, fallback, range));
    values.assign(3, value);
  }
  return std::array<double, 3>{values[0], values[1], values[2]};
}

Result<double> whole_param(const Transform& transform, std::string_view name, double fallback, Range range) {
  FORELOAD_ASSIGN(const double value, number_param(transform, name, fallback, range));
  if (value != std::floor(value)) return param_error(transform, name, describe("a whole number", range));
  return value;
}

Result<Colour> fill_param(const Transform& transform) {
  FORELOAD_ASSIGN(const auto levels, channels_param(transform, "fill", 0, {0, 255}));
  Colour fill;
  for (std::size_t i = 0; i < 3; ++i) fill[i] = static_cast<std::uint8_t>(levels[i]);
  return fill;
}

Result<Sampling> sampling_param(const Transform& transform) {
  FORELOAD_ASSIGN(const std::size_t word, word_param(transform, "interpolation", {"nearest", "bilinear"}));
  FORELOAD_ASSIGN(const Colour fill, fill_param(transform));
  return Sampling{word == 0 ? Interpolation::kNearest : Interpolation::kBilinear, fill};
}

}  // namespace foreload
