#include <algorithm>

#include "prep/op.h"
#include "prep/params.h"

namespace foreload {

namespace {

class Normalize final : public Op {
 public:
  explicit Normalize(const MeanStd& mean_std) : mean_std_(mean_std) {}

  Status declare(Declaration& declared) const override {
    if (declared.normalize) return Error{Code::kInvalid, "transform normalize stands twice; leave one"};
    declared.normalize = mean_std_;
    return {};
  }

 private:
  MeanStd mean_std_;
};

std::vector<double> list(const std::array<double, 3>& values) {
  return {values.begin(), values.end()};
}

Result<std::unique_ptr<Op>> make(const Transform& transform) {
  FORELOAD_ASSIGN(const auto mean, list_param(transform, "mean", list(kImageNet.mean), {-1e6, 1e6}));
  FORELOAD_ASSIGN(const auto std, list_param(transform, "std", list(kImageNet.std), {1e-6, 1e6}));
  MeanStd mean_std{};
  std::copy(mean.begin(), mean.end(), mean_std.mean.begin());
  std::copy(std.begin(), std.end(), mean_std.std.begin());
  return std::unique_ptr<Op>(std::make_unique<Normalize>(mean_std));
}

}  // namespace

OpEntry normalize_op() {
  return {"normalize", {"mean", "std"}, make};
}

}  // namespace foreload
