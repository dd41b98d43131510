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

enum class DType { kU8, kI16, kU16, kI32, kU32, kI64, kF16, kF32, kF64 };
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
Transform random_vertical_flip(double p = 0.5);
// A border on all four sides, of one level 0 … 255.
Transform pad(unsigned padding, double fill = 0);
// A random box of this size; the picture gets a black border of `padding` pixels first.
Transform random_crop(unsigned size, unsigned padding = 0);
Transform random_crop(unsigned height, unsigned width, unsigned padding);
// By a random angle between -degrees and degrees; nearest neighbours, black where nothing is seen.
Transform random_rotation(double degrees);
struct RandomAffineOptions {
  std::pair<double, double> translate{0, 0};  // at most, as shares of width and height
  std::pair<double, double> scale{1, 1};
  std::pair<double, double> shear{0, 0};  // degrees along x
  bool bilinear = false;
  double fill = 0;  // level where nothing is seen
};
// Rotation by up to `degrees`, translation, scaling and shear, around the centre.
Transform random_affine(double degrees, const RandomAffineOptions& options = {});
// Factors 1 ± the given numbers, hue turned by up to ± `hue` (at most 0.5), in random order.
Transform color_jitter(double brightness = 0, double contrast = 0, double saturation = 0, double hue = 0);
Transform grayscale();  // three equal channels
Transform random_grayscale(double p = 0.1);
// Blurs with a random sigma; `kernel_size` is odd.
Transform gaussian_blur(unsigned kernel_size, std::pair<double, double> sigma = {0.1, 2.0});
// One adjustment out of 14, with a random magnitude.
Transform trivial_augment_wide();
// `num_ops` adjustments out of 14, one after the other, with magnitude 0 … 30.
Transform rand_augment(unsigned num_ops = 2, unsigned magnitude = 9);
Transform normalize(const MeanStd& mean_std);
// Sets a random box to `value`: of the normalised tensor after normalize, of 0 … 1 (0 … 255 for u8) without or before
// it.
Transform random_erasing(double p = 0.5, std::pair<double, double> scale = {0.02, 0.33},
                         std::pair<double, double> ratio = {0.3, 3.3}, double value = 0);
// Samples that are arrays already: `.npy` files, or headerless bytes with `headerless`.
Transform array(DType dtype, std::vector<std::uint64_t> shape, bool headerless = false);
// After array: a window of its last dimensions, anywhere or in the middle; only its bytes are copied.
Transform random_window(std::vector<std::uint64_t> size);
Transform center_window(std::vector<std::uint64_t> size);
// One-dimensional arrays of varying length, delivered as values and offsets (Batch::offsets). Longer ones than
// `max_length` are bad samples, or cut off with `truncate`.
struct RaggedOptions {
  bool headerless = false;
  bool truncate = false;
};
Transform ragged(DType dtype, std::uint64_t max_length, RaggedOptions options = {});
// The last transform of an image chain: mixes the samples of positions 2i and 2i+1, with shares from Beta(alpha,
// alpha). Batch::mixes() has the other label and the share. Needs an even global batch with two samples per rank.
Transform mixup(double alpha = 1.0);
Transform cutmix(double alpha = 1.0);

// "random_resized_crop(224, scale=0.08:1), random_flip, normalize" and back.
Result<std::vector<Transform>> parse_chain(const std::string& text);
std::string chain_text(std::span<const Transform> chain);

}  // namespace foreload
