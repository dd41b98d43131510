#include <fmt/format.h>

#include "prep/fixed_point.h"
#include "prep/op.h"
#include "prep/params.h"

namespace foreload {

namespace {

class Mixing final : public Op {
 public:
  explicit Mixing(const MixSpec& spec) : spec_(spec) {}

  Status declare(Declaration& declared) const override {
    if (declared.array) return Error{Code::kInvalid, "mixup and cutmix mix images, not arrays"};
    declared.mix = spec_;
    return {};
  }

 private:
  MixSpec spec_;
};

template <MixKind kKind>
Result<std::unique_ptr<Op>> make(const Transform& transform) {
  FORELOAD_ASSIGN(const double alpha, number_param(transform, "alpha", 1.0, {0.01, 1000}));
  return std::unique_ptr<Op>(std::make_unique<Mixing>(MixSpec{kKind, to_q32(alpha)}));
}

}  // namespace

OpEntry mixup_op() {
  return {"mixup", {"alpha"}, make<MixKind::kMixup>};
}

OpEntry cutmix_op() {
  return {"cutmix", {"alpha"}, make<MixKind::kCutmix>};
}

}  // namespace foreload
