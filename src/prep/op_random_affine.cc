// random_rotation and random_affine. Angles are drawn in degrees with 32 bits after the point.
#include <fmt/format.h>

#include <cmath>

#include "prep/draw.h"
#include "prep/op.h"
#include "prep/params.h"

namespace foreload {

namespace {

constexpr Range kDegrees{-360, 360};
constexpr Range kShear{-89, 89};  // at 90 degrees everything is one line

class RandomRotation final : public Op {
 public:
  RandomRotation(Uniform degrees, const Sampling& sampling) : degrees_(degrees), sampling_(sampling) {}

  Status declare(Declaration& declared) const override { return check_before_normalize(declared, "random_rotation"); }

  Status place(Plan& plan, KeyedRandom& random) const override {
    const double degrees = degrees_.draw(random);
    if (degrees != 0) plan.add(Rotate{degrees, sampling_});
    return {};
  }

 private:
  Uniform degrees_;
  Sampling sampling_;
};

struct AffineRange {
  Uniform degrees;
  std::array<double, 2> translate;  // shares of width and height
  Uniform scale;
  Uniform shear_x, shear_y;
  Sampling sampling;
};

class RandomAffine final : public Op {
 public:
  explicit RandomAffine(const AffineRange& range) : range_(range) {}

  Status declare(Declaration& declared) const override { return check_before_normalize(declared, "random_affine"); }

  Status place(Plan& plan, KeyedRandom& random) const override {
    const Dimensions size = plan.size();
    Affine stroke{};
    stroke.degrees = range_.degrees.draw(random);
    stroke.translate = {pixels(range_.translate[0], size.width, random),
                        pixels(range_.translate[1], size.height, random)};
    stroke.scale = range_.scale.draw(random);
    stroke.shear = {range_.shear_x.draw(random), range_.shear_y.draw(random)};
    stroke.sampling = range_.sampling;
    plan.add(stroke);
    return {};
  }

 private:
  // Uniform up to `share` of the side in both directions, to the nearest pixel.
  static std::int64_t pixels(double share, std::uint32_t side, KeyedRandom& random) {
    const auto most = static_cast<std::int64_t>(to_q32(share) * side);
    return (between_q32(-most, most, random.unit32()) + (std::int64_t{1} << 31)) >> 32;
  }

  AffineRange range_;
};

Result<std::unique_ptr<Op>> make_rotation(const Transform& transform) {
  if (!find_param(transform, "degrees")) return param_error(transform, "degrees", "a number or lowest:highest");
  FORELOAD_ASSIGN(const auto degrees, spread_param(transform, "degrees", 0, kDegrees));
  FORELOAD_ASSIGN(const Sampling sampling, sampling_param(transform));
  return std::unique_ptr<Op>(std::make_unique<RandomRotation>(Uniform(degrees[0], degrees[1]), sampling));
}

// x alone: one number or two; x and y: four.
Result<std::array<double, 4>> shear_param(const Transform& transform) {
  const Param* param = find_param(transform, "shear");
  const auto* list = param ? std::get_if<std::vector<double>>(param) : nullptr;
  if (list && list->size() == 4) {
    FORELOAD_ASSIGN(const auto all, list_param(transform, "shear", {0, 0, 0, 0}, kShear));
    if (all[0] <= all[1] && all[2] <= all[3]) return std::array<double, 4>{all[0], all[1], all[2], all[3]};
    return param_error(transform, "shear", "smaller numbers before larger ones");
  }
  FORELOAD_ASSIGN(const auto x, spread_param(transform, "shear", 0, kShear));
  return std::array<double, 4>{x[0], x[1], 0, 0};
}

Result<std::unique_ptr<Op>> make_affine(const Transform& transform) {
  if (!find_param(transform, "degrees")) return param_error(transform, "degrees", "a number or lowest:highest");
  FORELOAD_ASSIGN(const auto degrees, spread_param(transform, "degrees", 0, kDegrees));
  FORELOAD_ASSIGN(const auto translate, list_param(transform, "translate", {0, 0}, {0, 1}));
  FORELOAD_ASSIGN(const auto scale, ascending_param(transform, "scale", {1, 1}, {0.01, 100}));
  FORELOAD_ASSIGN(const auto shear, shear_param(transform));
  FORELOAD_ASSIGN(const Sampling sampling, sampling_param(transform));
  return std::unique_ptr<Op>(std::make_unique<RandomAffine>(AffineRange{{degrees[0], degrees[1]},
                                                                        {translate[0], translate[1]},
                                                                        {scale[0], scale[1]},
                                                                        {shear[0], shear[1]},
                                                                        {shear[2], shear[3]},
                                                                        sampling}));
}

}  // namespace

OpEntry random_rotation_op() {
  return {"random_rotation", {"degrees", "interpolation", "fill"}, make_rotation};
}

OpEntry random_affine_op() {
  return {"random_affine", {"degrees", "translate", "scale", "shear", "interpolation", "fill"}, make_affine};
}

}  // namespace foreload
