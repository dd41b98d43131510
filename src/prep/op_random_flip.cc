#include "prep/draw.h"
#include "prep/op.h"
#include "prep/params.h"

namespace foreload {

namespace {

enum class Axis { kHorizontal, kVertical };

class RandomFlip final : public Op {
 public:
  RandomFlip(Axis axis, double p) : axis_(axis), chance_(p) {}

  Status declare(Declaration& declared) const override { return check_before_erasing(declared, "a flip"); }

  Status place(Plan& plan, KeyedRandom& random) const override {
    if (!chance_.draw(random)) return {};
    if (axis_ == Axis::kHorizontal) {
      plan.geometry().mirror();
    } else {
      plan.geometry().mirror_rows();
    }
    return {};
  }

 private:
  Axis axis_;
  Chance chance_;
};

template <Axis kAxis>
Result<std::unique_ptr<Op>> make(const Transform& transform) {
  FORELOAD_ASSIGN(const double p, number_param(transform, "p", 0.5, {0, 1}));
  return std::unique_ptr<Op>(std::make_unique<RandomFlip>(kAxis, p));
}

}  // namespace

OpEntry random_flip_op() {
  return {"random_flip", {"p"}, make<Axis::kHorizontal>};
}

OpEntry random_vertical_flip_op() {
  return {"random_vertical_flip", {"p"}, make<Axis::kVertical>};
}

}  // namespace foreload
