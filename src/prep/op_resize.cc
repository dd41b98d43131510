#include "prep/op.h"
#include "prep/params.h"

namespace foreload {

namespace {

// The whole picture becomes height × width.
class ResizeToSize final : public Op {
 public:
  explicit ResizeToSize(Dimensions size) : size_(size) {}

  Status declare(Declaration& declared) const override {
    FORELOAD_TRY(check_before_normalize(declared, "resize"));
    declared.size = size_;
    return {};
  }

  Status place(Plan& plan, KeyedRandom&) const override { return plan.geometry().resize(size_); }

 private:
  Dimensions size_;
};

// The shorter side becomes `side`, the longer one follows, rounded down.
Result<Dimensions> shorter_side(Dimensions from, std::uint64_t side) {
  const bool upright = from.width <= from.height;
  const std::uint64_t shorter = upright ? from.width : from.height;
  const std::uint64_t longer = side * (upright ? from.height : from.width) / shorter;
  if (longer > INT32_MAX) return Error{Code::kBadSample, "its sides are too different to be resized"};
  const auto other = static_cast<std::uint32_t>(longer);
  const auto same = static_cast<std::uint32_t>(side);
  return upright ? Dimensions{same, other} : Dimensions{other, same};
}

class ResizeShorterSide final : public Op {
 public:
  explicit ResizeShorterSide(std::uint32_t side) : side_(side) {}

  Status declare(Declaration& declared) const override {
    FORELOAD_TRY(check_before_normalize(declared, "resize"));
    if (!declared.size) return {};
    FORELOAD_ASSIGN(declared.size, shorter_side(*declared.size, side_));
    return {};
  }

  Status place(Plan& plan, KeyedRandom&) const override {
    FORELOAD_ASSIGN(const Dimensions to, shorter_side(plan.size(), side_));
    return plan.geometry().resize(to);
  }

 private:
  std::uint32_t side_;
};

Result<std::unique_ptr<Op>> make(const Transform& transform) {
  FORELOAD_ASSIGN(const SizeParam size, size_param(transform));
  if (size.square) return std::unique_ptr<Op>(std::make_unique<ResizeShorterSide>(size.size.width));
  return std::unique_ptr<Op>(std::make_unique<ResizeToSize>(size.size));
}

}  // namespace

OpEntry resize_op() {
  return {"resize", {"size"}, make};
}

}  // namespace foreload
