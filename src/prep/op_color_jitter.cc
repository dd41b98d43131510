#include <utility>

#include "prep/draw.h"
#include "prep/op.h"
#include "prep/params.h"

namespace foreload {

namespace {

constexpr double kMostFactor = 100;

struct Jitter {
  Uniform brightness, contrast, saturation, hue;
};

// torchvision's: the four adjustments in random order, each with a random factor; those without a range are left out.
class ColorJitter final : public Op {
 public:
  explicit ColorJitter(const Jitter& jitter) : jitter_(jitter) {}

  Status declare(Declaration& declared) const override { return check_before_normalize(declared, "color_jitter"); }

  Status place(Plan& plan, KeyedRandom& random) const override {
    std::array<unsigned, 4> order{0, 1, 2, 3};
    for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
    const double brightness = jitter_.brightness.draw(random);
    const double contrast = jitter_.contrast.draw(random);
    const double saturation = jitter_.saturation.draw(random);
    const double hue = jitter_.hue.draw(random);
    for (const unsigned which : order) {
      if (which == 0) enhance(plan, jitter_.brightness, Enhance{Enhance::Kind::kBrightness, brightness});
      if (which == 1) enhance(plan, jitter_.contrast, Enhance{Enhance::Kind::kContrast, contrast});
      if (which == 2) enhance(plan, jitter_.saturation, Enhance{Enhance::Kind::kSaturation, saturation});
      if (which == 3 && !jitter_.hue.is_always(0)) plan.add(ShiftHue{hue});
    }
    return {};
  }

 private:
  static void enhance(Plan& plan, const Uniform& range, const Enhance& stroke) {
    if (!range.is_always(1)) plan.add(stroke);
  }

  Jitter jitter_;
};

Result<std::unique_ptr<Op>> make(const Transform& transform) {
  FORELOAD_ASSIGN(const auto brightness, spread_param(transform, "brightness", 1, {0, kMostFactor}));
  FORELOAD_ASSIGN(const auto contrast, spread_param(transform, "contrast", 1, {0, kMostFactor}));
  FORELOAD_ASSIGN(const auto saturation, spread_param(transform, "saturation", 1, {0, kMostFactor}));
  FORELOAD_ASSIGN(const auto hue, spread_param(transform, "hue", 0, {-0.5, 0.5}));
  return std::unique_ptr<Op>(std::make_unique<ColorJitter>(Jitter{
      {brightness[0], brightness[1]}, {contrast[0], contrast[1]}, {saturation[0], saturation[1]}, {hue[0], hue[1]}}));
}

}  // namespace

OpEntry color_jitter_op() {
  return {"color_jitter", {"brightness", "contrast", "saturation", "hue"}, make};
}

}  // namespace foreload
