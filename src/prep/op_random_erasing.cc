#include "prep/crop.h"
#include "prep/draw.h"
#include "prep/op.h"
#include "prep/params.h"

namespace foreload {

namespace {

constexpr int kAttempts = 10;

// torchvision's: ten attempts at an area and a ratio height / width (uniform in its logarithm) whose box is smaller
// than the picture; without success nothing is erased.
class RandomErasing final : public Op {
 public:
  RandomErasing(double p, const CropRange& range, const std::array<double, 3>& value)
      : chance_(p), range_(range), value_(value) {}

  Status declare(Declaration& declared) const override {
    declared.erased_with.push_back(value_);
    return {};
  }

  Status place(Plan& plan, KeyedRandom& random) const override {
    if (!chance_.draw(random)) return {};
    const Dimensions size = plan.size();
    const std::uint64_t area = std::uint64_t{size.width} * size.height;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const auto share = static_cast<std::uint64_t>(between_q32(range_.scale_lo, range_.scale_hi, random.unit32()));
      const std::int64_t log_ratio = between_q32(range_.log_ratio_lo, range_.log_ratio_hi, random.unit32());
      const std::uint64_t height = nearest_root(area, share, exp2_q32(log_ratio));
      const std::uint64_t width = nearest_root(area, share, exp2_q32(-log_ratio));
      if (width >= size.width || height >= size.height) continue;
      const std::uint64_t top = random.below(size.height - height + 1);
      const std::uint64_t left = random.below(size.width - width + 1);
      plan.erase({{static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(top), static_cast<std::uint32_t>(width),
                   static_cast<std::uint32_t>(height)},
                  value_});
      return {};
    }
    return {};
  }

 private:
  Chance chance_;
  CropRange range_;
  std::array<double, 3> value_;
};

Result<std::unique_ptr<Op>> make(const Transform& transform) {
  FORELOAD_ASSIGN(const double p, number_param(transform, "p", 0.5, {0, 1}));
  FORELOAD_ASSIGN(const auto scale, ascending_param(transform, "scale", {0.02, 0.33}, {1e-6, 1}));
  FORELOAD_ASSIGN(const auto ratio, ascending_param(transform, "ratio", {0.3, 3.3}, {1.0 / 256, 256}));
  FORELOAD_ASSIGN(const auto value, channels_param(transform, "value", 0, {-60000, 60000}));
  return std::unique_ptr<Op>(
      std::make_unique<RandomErasing>(p, CropRange::make(scale[0], scale[1], ratio[0], ratio[1]), value));
}

}  // namespace

OpEntry random_erasing_op() {
  return {"random_erasing", {"p", "scale", "ratio", "value"}, make};
}

}  // namespace foreload
