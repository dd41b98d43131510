#include <fmt/format.h>

#include <cmath>

#include "prep/npy.h"
#include "prep/op.h"
#include "prep/params.h"

namespace foreload {

namespace {

constexpr Bytes kMostBytes = 1ull << 40;

class Array final : public Op {
 public:
  explicit Array(ArraySpec spec) : spec_(std::move(spec)) {}

  Status declare(Declaration& declared) const override {
    declared.array = spec_;
    return {};
  }

 private:
  ArraySpec spec_;
};

Result<std::vector<std::uint64_t>> shape_param(const Transform& transform, DType dtype) {
  const Param* param = find_param(transform, "shape");
  std::vector<double> numbers;
  if (param && std::holds_alternative<double>(*param)) numbers = {std::get<double>(*param)};
  if (param && std::holds_alternative<std::vector<double>>(*param)) numbers = std::get<std::vector<double>>(*param);
  bool good = param && !std::holds_alternative<std::string>(*param) && numbers.size() <= NpyHeader::kMaxRank;
  std::vector<std::uint64_t> shape;
  Bytes bytes = dtype_size(dtype);
  for (std::size_t i = 0; good && i < numbers.size(); ++i) {
    good = numbers[i] >= 1 && numbers[i] <= static_cast<double>(kMostBytes / bytes) &&
           numbers[i] == std::floor(numbers[i]);
    if (!good) break;
    shape.push_back(static_cast<std::uint64_t>(numbers[i]));
    bytes *= shape.back();
  }
  if (good) return shape;
  return param_error(transform, "shape",
                     fmt::format("at most {} whole numbers from 1, as in shape=3:224:224, and at most 1 TiB in all",
                                 NpyHeader::kMaxRank));
}

Result<std::unique_ptr<Op>> make(const Transform& transform) {
  FORELOAD_ASSIGN(const DType dtype, dtype_param(transform));
  FORELOAD_ASSIGN(auto shape, shape_param(transform, dtype));
  FORELOAD_ASSIGN(const double headerless, number_param(transform, "headerless", 0, {0, 1}));
  return std::unique_ptr<Op>(std::make_unique<Array>(ArraySpec{{dtype, std::move(shape)}, headerless != 0}));
}

}  // namespace

OpEntry array_op() {
  return {"array", {"dtype", "shape", "headerless"}, make};
}

}  // namespace foreload
