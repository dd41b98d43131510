// The builders of transform.h. They leave out parameters that have their default value, so that a chain
// built in code and the same chain parsed from text are equal.
#include "foreload/transform.h"

#include "base/check.h"
#include "foreload/batch.h"

namespace foreload {

namespace {

constexpr std::pair<double, double> kScale{0.08, 1.0};
constexpr std::pair<double, double> kRatio{3.0 / 4.0, 4.0 / 3.0};

struct DTypeFact {
  const char* name;
  std::size_t size;
};

DTypeFact fact(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return {"u8", 1};
    case DType::kI16:
      return {"i16", 2};
    case DType::kU16:
      return {"u16", 2};
    case DType::kI32:
      return {"i32", 4};
    case DType::kU32:
      return {"u32", 4};
    case DType::kI64:
      return {"i64", 8};
    case DType::kF16:
      return {"f16", 2};
    case DType::kF32:
      return {"f32", 4};
    case DType::kF64:
      return {"f64", 8};
  }
  FORELOAD_CHECK(false, "every DType is listed");
  return {};
}

Param list(std::pair<double, double> values) {
  return std::vector<double>{values.first, values.second};
}

Param list(const std::array<double, 3>& values) {
  return std::vector<double>(values.begin(), values.end());
}

Param pair_of(unsigned height, unsigned width) {
  return std::vector<double>{static_cast<double>(height), static_cast<double>(width)};
}

Transform window(const char* name, const std::vector<std::uint64_t>& size) {
  return {name, {{"size", std::vector<double>(size.begin(), size.end())}}};
}

Transform mixing(const char* name, double alpha) {
  Transform transform{name, {}};
  if (alpha != 1.0) transform.params.emplace_back("alpha", alpha);
  return transform;
}

struct NumberParam {
  const char* name;
  double value;
  double usual;
};

Transform with(const char* name, std::initializer_list<NumberParam> numbers) {
  Transform transform{name, {}};
  for (const auto& number : numbers) {
    if (number.value != number.usual) transform.params.emplace_back(number.name, number.value);
  }
  return transform;
}

Transform cropped(Param size, std::pair<double, double> scale, std::pair<double, double> ratio) {
  Transform transform{"random_resized_crop", {{"size", std::move(size)}}};
  if (scale != kScale) transform.params.emplace_back("scale", list(scale));
  if (ratio != kRatio) transform.params.emplace_back("ratio", list(ratio));
  return transform;
}

}  // namespace

std::size_t dtype_size(DType dtype) {
  return fact(dtype).size;
}

const char* dtype_name(DType dtype) {
  return fact(dtype).name;
}

Bytes TensorSpec::bytes() const {
  Bytes bytes = dtype_size(dtype);
  for (const auto dimension : shape) bytes *= dimension;
  return bytes;
}

Transform random_resized_crop(unsigned size, std::pair<double, double> scale, std::pair<double, double> ratio) {
  return cropped(static_cast<double>(size), scale, ratio);
}

Transform random_resized_crop(unsigned height, unsigned width, std::pair<double, double> scale,
                              std::pair<double, double> ratio) {
  return cropped(pair_of(height, width), scale, ratio);
}

Transform resize(unsigned size) {
  return {"resize", {{"size", static_cast<double>(size)}}};
}

Transform resize(unsigned height, unsigned width) {
  return {"resize", {{"size", pair_of(height, width)}}};
}

Transform center_crop(unsigned size) {
  return {"center_crop", {{"size", static_cast<double>(size)}}};
}

Transform center_crop(unsigned height, unsigned width) {
  return {"center_crop", {{"size", pair_of(height, width)}}};
}

Transform random_flip(double p) {
  Transform transform{"random_flip", {}};
  if (p != 0.5) transform.params.emplace_back("p", p);
  return transform;
}

Transform random_vertical_flip(double p) {
  return with("random_vertical_flip", {{"p", p, 0.5}});
}

Transform pad(unsigned padding, double fill) {
  Transform transform{"pad", {{"padding", static_cast<double>(padding)}}};
  if (fill != 0) transform.params.emplace_back("fill", fill);
  return transform;
}

Transform random_crop(unsigned size, unsigned padding) {
  Transform transform{"random_crop", {{"size", static_cast<double>(size)}}};
  if (padding != 0) transform.params.emplace_back("padding", static_cast<double>(padding));
  return transform;
}

Transform random_crop(unsigned height, unsigned width, unsigned padding) {
  Transform transform{"random_crop", {{"size", pair_of(height, width)}}};
  if (padding != 0) transform.params.emplace_back("padding", static_cast<double>(padding));
  return transform;
}

Transform random_rotation(double degrees) {
  return {"random_rotation", {{"degrees", degrees}}};
}

Transform random_affine(double degrees, const RandomAffineOptions& options) {
  Transform transform{"random_affine", {{"degrees", degrees}}};
  const RandomAffineOptions usual;
  if (options.translate != usual.translate) transform.params.emplace_back("translate", list(options.translate));
  if (options.scale != usual.scale) transform.params.emplace_back("scale", list(options.scale));
  if (options.shear != usual.shear) transform.params.emplace_back("shear", list(options.shear));
  if (options.bilinear) transform.params.emplace_back("interpolation", std::string("bilinear"));
  if (options.fill != usual.fill) transform.params.emplace_back("fill", options.fill);
  return transform;
}

Transform color_jitter(double brightness, double contrast, double saturation, double hue) {
  return with(
      "color_jitter",
      {{"brightness", brightness, 0}, {"contrast", contrast, 0}, {"saturation", saturation, 0}, {"hue", hue, 0}});
}

Transform grayscale() {
  return {"grayscale", {}};
}

Transform random_grayscale(double p) {
  return with("random_grayscale", {{"p", p, 0.1}});
}

Transform gaussian_blur(unsigned kernel_size, std::pair<double, double> sigma) {
  Transform transform{"gaussian_blur", {{"kernel_size", static_cast<double>(kernel_size)}}};
  if (sigma != std::pair{0.1, 2.0}) transform.params.emplace_back("sigma", list(sigma));
  return transform;
}

Transform trivial_augment_wide() {
  return {"trivial_augment_wide", {}};
}

Transform rand_augment(unsigned num_ops, unsigned magnitude) {
  return with("rand_augment",
              {{"num_ops", static_cast<double>(num_ops), 2}, {"magnitude", static_cast<double>(magnitude), 9}});
}

Transform random_erasing(double p, std::pair<double, double> scale, std::pair<double, double> ratio, double value) {
  Transform transform = with("random_erasing", {{"p", p, 0.5}});
  if (scale != std::pair{0.02, 0.33}) transform.params.emplace_back("scale", list(scale));
  if (ratio != std::pair{0.3, 3.3}) transform.params.emplace_back("ratio", list(ratio));
  if (value != 0) transform.params.emplace_back("value", value);
  return transform;
}

Transform normalize(const MeanStd& mean_std) {
  Transform transform{"normalize", {}};
  if (mean_std.mean != kImageNet.mean) transform.params.emplace_back("mean", list(mean_std.mean));
  if (mean_std.std != kImageNet.std) transform.params.emplace_back("std", list(mean_std.std));
  return transform;
}

Transform array(DType dtype, std::vector<std::uint64_t> shape, bool headerless) {
  std::vector<double> dimensions(shape.begin(), shape.end());
  Transform transform{"array", {{"dtype", std::string(dtype_name(dtype))}, {"shape", std::move(dimensions)}}};
  if (headerless) transform.params.emplace_back("headerless", 1.0);
  return transform;
}

Transform random_window(std::vector<std::uint64_t> size) {
  return window("random_window", size);
}

Transform center_window(std::vector<std::uint64_t> size) {
  return window("center_window", size);
}

Transform ragged(DType dtype, std::uint64_t max_length, RaggedOptions options) {
  const Param most = static_cast<double>(max_length);
  Transform transform{"ragged", {{"dtype", std::string(dtype_name(dtype))}, {"max_length", most}}};
  if (options.headerless) transform.params.emplace_back("headerless", 1.0);
  if (options.truncate) transform.params.emplace_back("truncate", 1.0);
  return transform;
}

Transform mixup(double alpha) {
  return mixing("mixup", alpha);
}

Transform cutmix(double alpha) {
  return mixing("cutmix", alpha);
}

}  // namespace foreload
