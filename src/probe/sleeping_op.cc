#include "probe/sleeping_op.h"

#include <thread>

#include "base/clock.h"
#include "prep/ops_testing.h"
#include "prep/params.h"

namespace foreload {
namespace {

constexpr const char* kName = "sleeping";
constexpr std::uint64_t kDelivered = 64;  // bytes of a sample: copying is not what is measured
constexpr double kFastest = 1e12;

class Sleeping final : public Op {
 public:
  explicit Sleeping(double rate) : rate_(rate) {}

  Status declare(Declaration& declared) const override {
    ArraySpec spec{.tensor = {DType::kU8, {kDelivered}}, .headerless = true, .ragged = true, .truncate = true};
    spec.emulated_work = [rate = rate_](Bytes sample) {
      std::this_thread::sleep_for(Duration(static_cast<std::int64_t>(1e9 * static_cast<double>(sample) / rate)));
    };
    declared.array = std::move(spec);
    return {};
  }

 private:
  double rate_;
};

Result<std::unique_ptr<Op>> make(const Transform& transform) {
  FORELOAD_ASSIGN(const double rate, number_param(transform, "rate", 0, {0, kFastest}));
  if (rate < 1) return param_error(transform, "rate", "bytes per second, at least 1");
  return std::unique_ptr<Op>(std::make_unique<Sleeping>(rate));
}

}  // namespace

void add_sleeping_op() {
  add_op_for_tests({kName, {"rate"}, make});
}

Transform sleeping(double bytes_per_second) {
  return {kName, {{"rate", bytes_per_second}}};
}

}  // namespace foreload
