#include "prep/fixed_point.h"
#include "prep/op.h"
#include "prep/params.h"

namespace foreload {

namespace {

class RandomFlip final : public Op {
 public:
  explicit RandomFlip(double p) : p_q32_(to_q32(p)) {}

  Status declare(Declaration&) const override { return {}; }

  Status place(Geometry& geometry, KeyedRandom& random) const override {
    if (random.unit32() < p_q32_) geometry.mirror();
    return {};
  }

 private:
  std::uint64_t p_q32_;
};

Result<std::unique_ptr<Op>> make(const Transform& transform) {
  FORELOAD_ASSIGN(const double p, number_param(transform, "p", 0.5, {0, 1}));
  return std::unique_ptr<Op>(std::make_unique<RandomFlip>(p));
}

}  // namespace

OpEntry random_flip_op() {
  return {"random_flip", {"p"}, make};
}

}  // namespace foreload
