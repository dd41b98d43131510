// Parameters of a transform, read with their type and range checked. Every error is kInvalid and names
// the transform, the parameter, what was given and what is accepted.
#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "foreload/result.h"
#include "foreload/source.h"
#include "foreload/transform.h"
#include "prep/stroke.h"

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

// Two numbers, the first not larger: lowest:highest, or one number d >= 0 that means centre - d … centre + d, without
// what lies below range.lowest. Without the parameter: the centre twice.
Result<std::vector<double>> spread_param(const Transform& transform, std::string_view name, double centre, Range range);
// Two numbers, the first not larger.
Result<std::vector<double>> ascending_param(const Transform& transform, std::string_view name,
                                            std::vector<double> fallback, Range range);
// The index of the word that is given, 0 without the parameter.
Result<std::size_t> word_param(const Transform& transform, std::string_view name, std::vector<const char*> words);
// One number for all channels, or three.
Result<std::array<double, 3>> channels_param(const Transform& transform, std::string_view name, double fallback,
                                             Range range);
Result<double> whole_param(const Transform& transform, std::string_view name, double fallback, Range range);
// "fill": levels 0 … 255, black without the parameter.
Result<Colour> fill_param(const Transform& transform);
// "interpolation" and "fill".
Result<Sampling> sampling_param(const Transform& transform);

// "dtype": the name of an element type.
Result<DType> dtype_param(const Transform& transform);

// A parameter as text: "224", "0.08:1", "5:" (a list of one), "f32".
std::string param_text(const Param& param);

Error param_error(const Transform& transform, std::string_view name, std::string_view wanted);

}  // namespace foreload
