// Transforms: what happens to a sample between its bytes and the batch. Names, parameters and
// defaults are torchvision's. A Transform is a plain value; a chain of them is checked once when
// the loader opens, and a wrong name or parameter is refused there with the accepted ones listed.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "foreload/result.h"

namespace foreload {

// One number, a list of numbers, or a word.
using Param = std::variant<double, std::vector<double>, std::string>;

struct Transform {
  std::string name;  // as in the registry: "random_resized_crop"
  std::vector<std::pair<std::string, Param>> params;

  bool operator==(const Transform&) const = default;
};

enum class DType { kU8, kI16, kU16, kI32, kI64, kF16, kF32, kF64 };
enum class Layout { kNchw, kNhwc };

std::size_t dtype_size(DType dtype);
const char* dtype_name(DType dtype);  // "u8", "f16", "f32", …

struct MeanStd {
  std::array<double, 3> mean;
  std::array<double, 3> std;
};
inline constexpr MeanStd kImageNet{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};

Transform random_resized_crop(unsigned size, std::pair<double, double> scale = {0.08, 1.0},
                              std::pair<double, double> ratio = {3.0 / 4.0, 4.0 / 3.0});
Transform random_resized_crop(unsigned height, unsigned width, std::pair<double, double> scale = {0.08, 1.0},
                              std::pair<double, double> ratio = {3.0 / 4.0, 4.0 / 3.0});
Transform resize(unsigned size);  // the shorter side becomes `size`
Transform resize(unsigned height, unsigned width);
Transform center_crop(unsigned size);
Transform center_crop(unsigned height, unsigned width);
Transform random_flip(double p = 0.5);  // horizontal
Transform normalize(const MeanStd& mean_std);
// Samples that are arrays already: `.npy` files, or headerless bytes with `headerless`.
Transform array(DType dtype, std::vector<std::uint64_t> shape, bool headerless = false);

// "random_resized_crop(224, scale=0.08:1), random_flip, normalize" and back.
Result<std::vector<Transform>> parse_chain(const std::string& text);
std::string chain_text(std::span<const Transform> chain);

}  // namespace foreload
