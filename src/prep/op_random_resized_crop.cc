#include "prep/op.h"

#include <cmath>

#include "prep/crop.h"
#include "prep/fixed_point.h"
#include "prep/params.h"

namespace foreload {

namespace {

constexpr int kAttempts = 10;

// As Python's round(), at least 1.
std::uint32_t rounded(double x) {
  const double floor = std::floor(x);
  const double rest = x - floor;
  const bool odd = std::fmod(floor, 2.0) != 0.0;
  const double whole = rest > 0.5 || (rest == 0.5 && odd) ? floor + 1 : floor;
  return whole < 1 ? 1 : static_cast<std::uint32_t>(whole);
}

Box central_box(const CropRange& range, Dimensions picture) {
  const double ratio = static_cast<double>(picture.width) / picture.height;
  Dimensions size = picture;
  if (ratio < range.ratio_lo) size.height = rounded(picture.width / range.ratio_lo);
  if (ratio > range.ratio_hi) size.width = rounded(picture.height * range.ratio_hi);
  return {(picture.width - size.width) / 2, (picture.height - size.height) / 2, size.width, size.height};
}

class RandomResizedCrop final : public Op {
 public:
  RandomResizedCrop(Dimensions size, CropRange range) : size_(size), range_(range) {}

  Status declare(Declaration& declared) const override {
    FORELOAD_TRY(check_before_normalize(declared, "random_resized_crop"));
    declared.size = size_;
    return {};
  }

  Status place(Plan& plan, KeyedRandom& random) const override {
    const Box box = draw_crop(range_, plan.size(), random);
    FORELOAD_TRY(plan.geometry().cut(box.x, box.y, {box.width, box.height}));
    return plan.geometry().resize(size_);
  }

 private:
  Dimensions size_;
  CropRange range_;
};

Result<std::unique_ptr<Op>> make(const Transform& transform) {
  FORELOAD_ASSIGN(const SizeParam size, size_param(transform));
  FORELOAD_ASSIGN(const auto scale, ascending_param(transform, "scale", {0.08, 1.0}, {1e-6, 16}));
  FORELOAD_ASSIGN(const auto ratio, ascending_param(transform, "ratio", {3.0 / 4.0, 4.0 / 3.0}, {1.0 / 256, 256}));
  return std::unique_ptr<Op>(
      std::make_unique<RandomResizedCrop>(size.size, CropRange::make(scale[0], scale[1], ratio[0], ratio[1])));
}

}  // namespace

std::uint64_t nearest_root(std::uint64_t area, std::uint64_t share_q32, std::uint64_t factor_q32) {
  const std::uint64_t root_q32 = isqrt(Uint128{area} * share_q32 * factor_q32);
  return (root_q32 >> 32) + (root_q32 >> 31 & 1);
}

CropRange CropRange::make(double scale_lo, double scale_hi, double ratio_lo, double ratio_hi) {
  return {static_cast<std::int64_t>(to_q32(scale_lo)),
          static_cast<std::int64_t>(to_q32(scale_hi)),
          log2_q32(to_q32(ratio_lo)),
          log2_q32(to_q32(ratio_hi)),
          ratio_lo,
          ratio_hi};
}

Box draw_crop(const CropRange& range, Dimensions picture, KeyedRandom& random) {
  const std::uint64_t area = std::uint64_t{picture.width} * picture.height;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto share = static_cast<std::uint64_t>(between_q32(range.scale_lo, range.scale_hi, random.unit32()));
    const std::int64_t log_ratio = between_q32(range.log_ratio_lo, range.log_ratio_hi, random.unit32());
    const std::uint64_t width = nearest_root(area, share, exp2_q32(log_ratio));
    const std::uint64_t height = nearest_root(area, share, exp2_q32(-log_ratio));
    if (width == 0 || width > picture.width || height == 0 || height > picture.height) continue;
    const std::uint64_t y = random.below(picture.height - height + 1);
    const std::uint64_t x = random.below(picture.width - width + 1);
    return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(width),
            static_cast<std::uint32_t>(height)};
  }
  return central_box(range, picture);
}

OpEntry random_resized_crop_op() {
  return {"random_resized_crop", {"size", "scale", "ratio"}, make};
}

}  // namespace foreload
