#include <fmt/format.h>

#include <cmath>

#include "prep/op.h"
#include "prep/params.h"

namespace foreload {

namespace {

// A window of the last dimensions of an array; those before them are taken whole.
class Window final : public Op {
 public:
  Window(std::string name, std::vector<std::uint64_t> size, bool random)
      : name_(std::move(name)), size_(std::move(size)), random_(random) {}

  Status declare(Declaration& declared) const override {
    if (!declared.array || declared.array->ragged || !declared.array->window.empty()) {
      return Error{Code::kInvalid, fmt::format("transform {} must follow array directly", name_)};
    }
    const auto& shape = declared.array->tensor.shape;
    std::vector<std::uint64_t> window = shape;
    bool fits = size_.size() <= shape.size();
    for (std::size_t i = 0; fits && i < size_.size(); ++i) {
      std::uint64_t& side = window[shape.size() - size_.size() + i];
      fits = size_[i] <= side;
      side = size_[i];
    }
    if (!fits) {
      return Error{Code::kInvalid, fmt::format("transform {}: a window of {} does not fit an array of {}", name_,
                                               fmt::join(size_, ":"), fmt::join(shape, ":"))};
    }
    declared.array->window = std::move(window);
    declared.array->random_window = random_;
    return {};
  }

 private:
  std::string name_;
  std::vector<std::uint64_t> size_;
  bool random_;
};

template <bool kRandom>
Result<std::unique_ptr<Op>> make(const Transform& transform) {
  const Param* param = find_param(transform, "size");
  std::vector<double> sides;
  if (param && std::holds_alternative<double>(*param)) sides = {std::get<double>(*param)};
  if (param && std::holds_alternative<std::vector<double>>(*param)) sides = std::get<std::vector<double>>(*param);
  std::vector<std::uint64_t> size;
  for (const double side : sides) {
    if (!(side >= 1 && side <= 1e12 && side == std::floor(side))) break;
    size.push_back(static_cast<std::uint64_t>(side));
  }
  if (size.empty() || size.size() != sides.size()) {
    return param_error(transform, "size", "one or more whole numbers from 1, as in size=64:128:128");
  }
  return std::unique_ptr<Op>(std::make_unique<Window>(transform.name, std::move(size), kRandom));
}

}  // namespace

OpEntry center_window_op() {
  return {"center_window", {"size"}, make<false>};
}

OpEntry random_window_op() {
  return {"random_window", {"size"}, make<true>};
}

}  // namespace foreload
