#include "prep/op.h"

#include "prep/params.h"

namespace foreload {

namespace {

// torchvision cuts int(round((from - to) / 2.0)) off, where Python rounds a half to the even number; a
// picture that is too small gets black borders, the larger one at the end.
std::int64_t offset(std::int64_t from, std::int64_t to) {
  if (from < to) return -((to - from) / 2);
  const std::int64_t floor = (from - to) / 2;
  return (from - to) % 2 != 0 && floor % 2 != 0 ? floor + 1 : floor;
}

class CenterCrop final : public Op {
 public:
  explicit CenterCrop(Dimensions size) : size_(size) {}

  Status declare(Declaration& declared) const override {
    FORELOAD_TRY(check_before_normalize(declared, "center_crop"));
    declared.size = size_;
    return {};
  }

  Status place(Plan& plan, KeyedRandom&) const override {
    const Dimensions from = plan.size();
    return plan.geometry().cut(offset(from.width, size_.width), offset(from.height, size_.height), size_);
  }

 private:
  Dimensions size_;
};

Result<std::unique_ptr<Op>> make(const Transform& transform) {
  FORELOAD_ASSIGN(const SizeParam size, size_param(transform));
  return std::unique_ptr<Op>(std::make_unique<CenterCrop>(size.size));
}

}  // namespace

OpEntry center_crop_op() {
  return {"center_crop", {"size"}, make};
}

}  // namespace foreload
