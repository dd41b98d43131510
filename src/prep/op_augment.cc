// trivial_augment_wide and rand_augment: adjustments drawn from the same fourteen, with magnitudes from a scale of
// evenly spaced bins. They differ in how far the scales reach and in how the bin is chosen.
#include <cmath>

#include "prep/draw.h"
#include "prep/op.h"
#include "prep/params.h"

namespace foreload {

namespace {

enum class Adjustment {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
};
constexpr std::uint64_t kAdjustments = 14;

// The largest magnitude of each scale.
struct Reach {
  double shear, degrees, factor;
  int posterize_bits;             // that are lost
  std::array<double, 2> pixels;   // of translation: this many …
  std::array<double, 2> of_side;  // … plus this share of width and height
};

constexpr Reach kWide{0.99, 135.0, 0.99, 6, {32.0, 32.0}, {0.0, 0.0}};
constexpr Reach kRand{0.3, 30.0, 0.9, 4, {0.0, 0.0}, {150.0 / 331.0, 150.0 / 331.0}};

bool is_signed(Adjustment adjustment) {
  return adjustment >= Adjustment::kShearX && adjustment <= Adjustment::kSharpness;
}

bool has_magnitude(Adjustment adjustment) {
  return is_signed(adjustment) || adjustment == Adjustment::kPosterize || adjustment == Adjustment::kSolarize;
}

// Half goes to the even number, as in torch.
int rounded(double x) {
  const double floor = std::floor(x);
  const bool up = x - floor > 0.5 || (x - floor == 0.5 && std::fmod(floor, 2.0) != 0.0);
  return static_cast<int>(up ? floor + 1 : floor);
}

struct Choice {
  Adjustment adjustment = Adjustment::kIdentity;
  std::uint64_t bin = 0;
  std::uint64_t last_bin = 1;
  double sign = 1;
  Sampling sampling;

  double of(double reach) const { return reach * static_cast<double>(bin) / static_cast<double>(last_bin); }
  double signed_of(double reach) const { return sign * of(reach); }
};

void add_shear(Plan& plan, const Choice& choice, double x, double y) {
  if (x != 0 || y != 0) plan.add(Shear{x, y, choice.sampling});
}

void add_translation(Plan& plan, const Choice& choice, double x, double y) {
  const std::array<std::int64_t, 2> pixels{static_cast<std::int64_t>(x), static_cast<std::int64_t>(y)};
  if (pixels[0] == 0 && pixels[1] == 0) return;
  plan.add(Affine{0.0, pixels, 1.0, {0.0, 0.0}, choice.sampling});
}

void add_enhancement(Plan& plan, Enhance::Kind kind, double change) {
  if (change != 0) plan.add(Enhance{kind, 1.0 + change});
}

void apply(Plan& plan, const Choice& choice, const Reach& reach) {
  const Dimensions size = plan.size();
  switch (choice.adjustment) {
    case Adjustment::kIdentity:
      return;
    case Adjustment::kShearX:
      return add_shear(plan, choice, choice.signed_of(reach.shear), 0);
    case Adjustment::kShearY:
      return add_shear(plan, choice, 0, choice.signed_of(reach.shear));
    case Adjustment::kTranslateX:
      return add_translation(plan, choice, choice.signed_of(reach.pixels[0] + reach.of_side[0] * size.width), 0);
    case Adjustment::kTranslateY:
      return add_translation(plan, choice, 0, choice.signed_of(reach.pixels[1] + reach.of_side[1] * size.height));
    case Adjustment::kRotate:
      if (choice.bin > 0) plan.add(Rotate{choice.signed_of(reach.degrees), choice.sampling});
      return;
    case Adjustment::kBrightness:
      return add_enhancement(plan, Enhance::Kind::kBrightness, choice.signed_of(reach.factor));
    case Adjustment::kColor:
      return add_enhancement(plan, Enhance::Kind::kSaturation, choice.signed_of(reach.factor));
    case Adjustment::kContrast:
      return add_enhancement(plan, Enhance::Kind::kContrast, choice.signed_of(reach.factor));
    case Adjustment::kSharpness:
      return add_enhancement(plan, Enhance::Kind::kSharpness, choice.signed_of(reach.factor));
    case Adjustment::kPosterize:
      if (const int lost = rounded(choice.of(reach.posterize_bits)); lost > 0) {
        plan.add(Posterize{static_cast<std::uint32_t>(8 - lost)});
      }
      return;
    case Adjustment::kSolarize:
      return plan.add(Solarize{255.0 - choice.of(255.0)});
    case Adjustment::kAutoContrast:
      return plan.add(AutoContrast{});
    case Adjustment::kEqualize:
      return plan.add(Equalize{});
  }
}

struct AugmentOptions {
  const char* name;
  const Reach* reach;
  std::uint64_t adjustments;
  std::uint64_t bins;
  std::optional<std::uint64_t> bin;  // always this one; else a random one
  Sampling sampling;
};

class Augment final : public Op {
 public:
  explicit Augment(const AugmentOptions& options) : options_(options) {}

  Status declare(Declaration& declared) const override { return check_before_normalize(declared, options_.name); }

  Status place(Plan& plan, KeyedRandom& random) const override {
    for (std::uint64_t i = 0; i < options_.adjustments; ++i) {
      Choice choice{.last_bin = options_.bins - 1, .sampling = options_.sampling};
      choice.adjustment = static_cast<Adjustment>(random.below(kAdjustments));
      if (has_magnitude(choice.adjustment)) choice.bin = options_.bin ? *options_.bin : random.below(options_.bins);
      if (is_signed(choice.adjustment) && random.below(2) == 1) choice.sign = -1;
      apply(plan, choice, *options_.reach);
    }
    return {};
  }

 private:
  AugmentOptions options_;
};

Result<std::unique_ptr<Op>> make_trivial(const Transform& transform) {
  FORELOAD_ASSIGN(const double bins, whole_param(transform, "num_magnitude_bins", 31, {2, 1000}));
  FORELOAD_ASSIGN(const Sampling sampling, sampling_param(transform));
  return std::unique_ptr<Op>(std::make_unique<Augment>(
      AugmentOptions{"trivial_augment_wide", &kWide, 1, static_cast<std::uint64_t>(bins), std::nullopt, sampling}));
}

Result<std::unique_ptr<Op>> make_rand(const Transform& transform) {
  FORELOAD_ASSIGN(const double count, whole_param(transform, "num_ops", 2, {1, 16}));
  FORELOAD_ASSIGN(const double bins, whole_param(transform, "num_magnitude_bins", 31, {2, 1000}));
  FORELOAD_ASSIGN(const double bin, whole_param(transform, "magnitude", 9, {0, bins - 1}));
  FORELOAD_ASSIGN(const Sampling sampling, sampling_param(transform));
  return std::unique_ptr<Op>(std::make_unique<Augment>(
      AugmentOptions{"rand_augment", &kRand, static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(bins),
                     static_cast<std::uint64_t>(bin), sampling}));
}

}  // namespace

OpEntry trivial_augment_wide_op() {
  return {"trivial_augment_wide", {"num_magnitude_bins", "interpolation", "fill"}, make_trivial};
}

OpEntry rand_augment_op() {
  return {"rand_augment", {"num_ops", "magnitude", "num_magnitude_bins", "interpolation", "fill"}, make_rand};
}

}  // namespace foreload
