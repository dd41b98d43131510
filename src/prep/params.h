// Parameters of a transform, read with their type and range checked. Every error is kInvalid and names
// the transform, the parameter, what was given and what is accepted.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "foreload/result.h"
#include "foreload/source.h"
#include "foreload/transform.h"

namespace foreload {

struct Range {
  double lowest;
  double highest;
};

inline constexpr double kMaxSide = 32768;  // of a picture that a transform is asked to make

const Param* find_param(const Transform& transform, std::string_view name);

Result<double> number_param(const Transform& transform, std::string_view name, double fallback, Range range);
// Exactly fallback.size() numbers; none left out.
Result<std::vector<double>> list_param(const Transform& transform, std::string_view name, std::vector<double> fallback,
                                       Range range);
// "size": one whole number, or height and width. `square` tells which was given; then both are equal.
struct SizeParam {
  Dimensions size;
  bool square = false;
};
Result<SizeParam> size_param(const Transform& transform);

// A parameter as text: "224", "0.08:1", "5:" (a list of one), "f32".
std::string param_text(const Param& param);

Error param_error(const Transform& transform, std::string_view name, std::string_view wanted);

}  // namespace foreload
