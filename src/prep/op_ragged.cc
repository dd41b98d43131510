#include <cmath>

#include "prep/op.h"
#include "prep/params.h"

namespace foreload {

namespace {

class Ragged final : public Op {
 public:
  explicit Ragged(ArraySpec spec) : spec_(std::move(spec)) {}

  Status declare(Declaration& declared) const override {
    declared.array = spec_;
    return {};
  }

 private:
  ArraySpec spec_;
};

Result<std::unique_ptr<Op>> make(const Transform& transform) {
  constexpr double kMost = 1ull << 40;
  ArraySpec spec{.ragged = true};
  FORELOAD_ASSIGN(spec.tensor.dtype, dtype_param(transform));
  FORELOAD_ASSIGN(const double most, number_param(transform, "max_length", 0, {0, kMost / 8}));
  if (most < 1 || most != std::floor(most)) {
    return param_error(transform, "max_length", "the most elements of a sample, a whole number from 1");
  }
  FORELOAD_ASSIGN(const double headerless, number_param(transform, "headerless", 0, {0, 1}));
  FORELOAD_ASSIGN(const double truncate, number_param(transform, "truncate", 0, {0, 1}));
  spec.tensor.shape = {static_cast<std::uint64_t>(most)};
  spec.headerless = headerless != 0;
  spec.truncate = truncate != 0;
  return std::unique_ptr<Op>(std::make_unique<Ragged>(std::move(spec)));
}

}  // namespace

OpEntry ragged_op() {
  return {"ragged", {"dtype", "max_length", "headerless", "truncate"}, make};
}

}  // namespace foreload
