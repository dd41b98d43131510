#include "prep/draw.h"
#include "prep/op.h"
#include "prep/params.h"

namespace foreload {

namespace {

// The picture keeps three channels, all the same.
class RandomGrayscale final : public Op {
 public:
  RandomGrayscale(const char* name, double p) : name_(name), chance_(p) {}

  Status declare(Declaration& declared) const override { return check_before_normalize(declared, name_); }

  Status place(Plan& plan, KeyedRandom& random) const override {
    if (chance_.draw(random)) plan.add(MakeGray{});
    return {};
  }

 private:
  const char* name_;
  Chance chance_;
};

Result<std::unique_ptr<Op>> make_always(const Transform& transform) {
  FORELOAD_TRY(whole_param(transform, "num_output_channels", 3, {3, 3}));
  return std::unique_ptr<Op>(std::make_unique<RandomGrayscale>("grayscale", 1));
}

Result<std::unique_ptr<Op>> make_random(const Transform& transform) {
  FORELOAD_ASSIGN(const double p, number_param(transform, "p", 0.1, {0, 1}));
  return std::unique_ptr<Op>(std::make_unique<RandomGrayscale>("random_grayscale", p));
}

}  // namespace

OpEntry grayscale_op() {
  return {"grayscale", {"num_output_channels"}, make_always};
}

OpEntry random_grayscale_op() {
  return {"random_grayscale", {"p"}, make_random};
}

}  // namespace foreload
