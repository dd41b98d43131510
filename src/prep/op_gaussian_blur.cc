#include <fmt/format.h>

#include <cmath>

#include "prep/draw.h"
#include "prep/op.h"
#include "prep/params.h"

namespace foreload {

namespace {

constexpr double kMostKernel = 255;
constexpr Range kSigma{0.01, 1000};

class GaussianBlur final : public Op {
 public:
  GaussianBlur(Dimensions kernel, Uniform sigma) : kernel_(kernel), sigma_(sigma) {}

  Status declare(Declaration& declared) const override {
    FORELOAD_TRY(check_before_normalize(declared, "gaussian_blur"));
    if (declared.size && !fits(*declared.size)) return too_small(Code::kInvalid, *declared.size);
    return {};
  }

  Status place(Plan& plan, KeyedRandom& random) const override {
    if (!fits(plan.size())) return too_small(Code::kBadSample, plan.size());
    plan.add(Blur{kernel_.width, kernel_.height, sigma_.draw(random)});
    return {};
  }

 private:
  // The border shows the picture mirrored, so half the kernel must find enough of it.
  bool fits(Dimensions size) const { return kernel_.width / 2 < size.width && kernel_.height / 2 < size.height; }

  Error too_small(Code code, Dimensions size) const {
    return {code, fmt::format("gaussian_blur: a kernel of {}x{} is too large for {}x{} pixels; make it at most twice "
                              "as large as the picture",
                              kernel_.width, kernel_.height, size.width, size.height)};
  }

  Dimensions kernel_;
  Uniform sigma_;
};

Result<Dimensions> kernel_param(const Transform& transform) {
  const Param* param = find_param(transform, "kernel_size");
  const auto* number = param ? std::get_if<double>(param) : nullptr;
  const auto* list = param ? std::get_if<std::vector<double>>(param) : nullptr;
  const auto good = [](double side) { return side >= 1 && side <= kMostKernel && std::fmod(side, 2) == 1; };
  if (number && good(*number))
    return Dimensions{static_cast<std::uint32_t>(*number), static_cast<std::uint32_t>(*number)};
  if (list && list->size() == 2 && good((*list)[0]) && good((*list)[1])) {
    return Dimensions{static_cast<std::uint32_t>((*list)[0]), static_cast<std::uint32_t>((*list)[1])};
  }
  return param_error(transform, "kernel_size",
                     fmt::format("an odd number or width:height, each from 1 to {}", kMostKernel));
}

Result<std::unique_ptr<Op>> make(const Transform& transform) {
  FORELOAD_ASSIGN(const Dimensions kernel, kernel_param(transform));
  const Param* param = find_param(transform, "sigma");
  if (param && std::holds_alternative<double>(*param)) {
    FORELOAD_ASSIGN(const double sigma, number_param(transform, "sigma", 1, kSigma));
    return std::unique_ptr<Op>(std::make_unique<GaussianBlur>(kernel, Uniform(sigma, sigma)));
  }
  FORELOAD_ASSIGN(const auto sigma, ascending_param(transform, "sigma", {0.1, 2.0}, kSigma));
  return std::unique_ptr<Op>(std::make_unique<GaussianBlur>(kernel, Uniform(sigma[0], sigma[1])));
}

}  // namespace

OpEntry gaussian_blur_op() {
  return {"gaussian_blur", {"kernel_size", "sigma"}, make};
}

}  // namespace foreload
