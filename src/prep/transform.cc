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

}  // namespace foreload
