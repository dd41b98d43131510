// pad and random_crop. A black border is a cut that reaches outside of the picture and costs nothing; other borders
// need the pixels.
#include <fmt/format.h>

#include <cmath>

#include "prep/op.h"
#include "prep/params.h"

namespace foreload {

namespace {

Dimensions padded(Dimensions size, const Margins& margins) {
  return {static_cast<std::uint32_t>(size.width + margins.left + margins.right),
          static_cast<std::uint32_t>(size.height + margins.top + margins.bottom)};
}

bool is_none(const Margins& margins) {
  return margins.left == 0 && margins.top == 0 && margins.right == 0 && margins.bottom == 0;
}

struct Padding {
  Margins margins;
  PadMode mode = PadMode::kConstant;
  Colour fill{};

  Status place(Plan& plan, const Margins& wanted) const {
    if (is_none(wanted)) return {};
    const Dimensions from = plan.size();
    const Dimensions size = padded(from, wanted);
    if (size.width > kMaxSide || size.height > kMaxSide) {
      return Error{Code::kBadSample, fmt::format("its {}x{} pixels would be padded to {}x{}; at most {} are possible",
                                                 from.width, from.height, size.width, size.height, kMaxSide)};
    }
    if (mode == PadMode::kConstant && fill == Colour{}) {
      return plan.geometry().cut(-wanted.left, -wanted.top, size);
    }
    if (mode == PadMode::kReflect && (from.width == 1 || from.height == 1)) {
      return Error{Code::kBadSample, "a side of one pixel can not be reflected; use padding_mode=symmetric"};
    }
    plan.add(Border{wanted, mode, fill});
    return {};
  }
};

class Pad final : public Op {
 public:
  explicit Pad(const Padding& padding) : padding_(padding) {}

  Status declare(Declaration& declared) const override {
    FORELOAD_TRY(check_before_normalize(declared, "pad"));
    if (!declared.size) return {};
    const Dimensions size = padded(*declared.size, padding_.margins);
    if (size.width > kMaxSide || size.height > kMaxSide) {
      return Error{Code::kInvalid, fmt::format("transform pad makes {}x{} pixels; at most {} are possible on a side",
                                               size.width, size.height, kMaxSide)};
    }
    declared.size = size;
    return {};
  }

  Status place(Plan& plan, KeyedRandom&) const override { return padding_.place(plan, padding_.margins); }

 private:
  Padding padding_;
};

class RandomCrop final : public Op {
 public:
  RandomCrop(Dimensions size, const Padding& padding, bool pad_if_needed)
      : size_(size), padding_(padding), pad_if_needed_(pad_if_needed) {}

  Status declare(Declaration& declared) const override {
    FORELOAD_TRY(check_before_normalize(declared, "random_crop"));
    if (declared.size && !pad_if_needed_ && !holds(padded(*declared.size, padding_.margins))) {
      return too_small(Code::kInvalid, padded(*declared.size, padding_.margins));
    }
    declared.size = size_;
    return {};
  }

  Status place(Plan& plan, KeyedRandom& random) const override {
    FORELOAD_TRY(padding_.place(plan, padding_.margins));
    if (pad_if_needed_) FORELOAD_TRY(padding_.place(plan, needed(plan.size())));
    const Dimensions from = plan.size();
    if (!holds(from)) return too_small(Code::kBadSample, from);
    const std::uint64_t top = random.below(std::uint64_t{from.height} - size_.height + 1);
    const std::uint64_t left = random.below(std::uint64_t{from.width} - size_.width + 1);
    return plan.geometry().cut(static_cast<std::int64_t>(left), static_cast<std::int64_t>(top), size_);
  }

 private:
  bool holds(Dimensions size) const { return size.width >= size_.width && size.height >= size_.height; }

  // torchvision adds what is missing on both sides, so that the place of the picture is random as well.
  Margins needed(Dimensions size) const {
    const std::int64_t x = size.width < size_.width ? size_.width - size.width : 0;
    const std::int64_t y = size.height < size_.height ? size_.height - size.height : 0;
    return {x, y, x, y};
  }

  Error too_small(Code code, Dimensions size) const {
    return {code, fmt::format("random_crop: {}x{} pixels do not hold a crop of {}x{}; resize first, or give padding or "
                              "pad_if_needed=1",
                              size.width, size.height, size_.width, size_.height)};
  }

  Dimensions size_;
  Padding padding_;
  bool pad_if_needed_;
};

// One number for all sides, left/right:top/bottom, or left:top:right:bottom.
Result<Margins> margins_param(const Transform& transform) {
  const Param* param = find_param(transform, "padding");
  if (!param) return Margins{};
  std::vector<double> given;
  if (const auto* number = std::get_if<double>(param)) given.assign(4, *number);
  if (const auto* list = std::get_if<std::vector<double>>(param)) given = *list;
  if (given.size() == 1) given.assign(4, given[0]);
  if (given.size() == 2) given = {given[0], given[1], given[0], given[1]};
  bool good = given.size() == 4;
  for (const double margin : given) good = good && margin >= 0 && margin <= kMaxSide && margin == std::floor(margin);
  if (good) {
    return Margins{static_cast<std::int64_t>(given[0]), static_cast<std::int64_t>(given[1]),
                   static_cast<std::int64_t>(given[2]), static_cast<std::int64_t>(given[3])};
  }
  return param_error(transform, "padding",
                     fmt::format("a whole number, x:y or left:top:right:bottom, each from 0 to {}", kMaxSide));
}

Result<Padding> padding_params(const Transform& transform) {
  FORELOAD_ASSIGN(const Margins margins, margins_param(transform));
  FORELOAD_ASSIGN(const std::size_t mode,
                  word_param(transform, "padding_mode", {"constant", "edge", "reflect", "symmetric"}));
  FORELOAD_ASSIGN(const Colour fill, fill_param(transform));
  return Padding{margins, static_cast<PadMode>(mode), fill};
}

Result<std::unique_ptr<Op>> make_pad(const Transform& transform) {
  if (!find_param(transform, "padding")) return param_error(transform, "padding", "a whole number, as in pad(4)");
  FORELOAD_ASSIGN(const Padding padding, padding_params(transform));
  return std::unique_ptr<Op>(std::make_unique<Pad>(padding));
}

Result<std::unique_ptr<Op>> make_crop(const Transform& transform) {
  FORELOAD_ASSIGN(const SizeParam size, size_param(transform));
  FORELOAD_ASSIGN(const Padding padding, padding_params(transform));
  FORELOAD_ASSIGN(const double pad_if_needed, whole_param(transform, "pad_if_needed", 0, {0, 1}));
  return std::unique_ptr<Op>(std::make_unique<RandomCrop>(size.size, padding, pad_if_needed != 0));
}

}  // namespace

OpEntry pad_op() {
  return {"pad", {"padding", "fill", "padding_mode"}, make_pad};
}

OpEntry random_crop_op() {
  return {"random_crop", {"size", "padding", "pad_if_needed", "fill", "padding_mode"}, make_crop};
}

}  // namespace foreload
