// A weight is a double m · 2^e with an integer m, so its fixed-point form is m shifted by e + s, the rest cut off, with
// one s for all. s is as large as a sum below 2^63 allows: first by the largest weight and the number of them, then by
// the sum that came out. No floating-point arithmetic takes part: every machine has the same table.
//
// A draw is a number below the sum, keyed by (seed, epoch, position), and a binary search for the sample.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/hash.h"
#include "base/random.h"
#include "plan/order.h"

namespace foreload {
namespace {

struct Parts {
  std::uint64_t mantissa = 0;
  int exponent = 0;
};

Parts parts_of(double weight) {
  constexpr unsigned kFractionBits = 52;
  constexpr int kBias = 1075;
  const auto bits = std::bit_cast<std::uint64_t>(weight);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << kFractionBits) - 1);
  const auto field = static_cast<int>(bits >> kFractionBits & 0x7ff);
  if (field == 0) return {fraction, 1 - kBias};  // zero, or subnormal
  return {fraction | std::uint64_t{1} << kFractionBits, field - kBias};
}

// REQUIRES: the result fits, which is what `shift` was chosen for.
std::uint64_t fixed_point(double weight, int shift) {
  const Parts parts = parts_of(weight);
  const int move = parts.exponent + shift;
  if (move >= 0) return parts.mantissa == 0 ? 0 : parts.mantissa << move;
  return move > -64 ? parts.mantissa >> -move : 0;
}

// REQUIRES: one of them is above 0.
int choose_shift(std::span<const double> weights) {
  int top = -1'100;  // the largest is below 2^top
  for (const double weight : weights) {
    const Parts parts = parts_of(weight);
    if (parts.mantissa != 0) top = std::max(top, parts.exponent + static_cast<int>(std::bit_width(parts.mantissa)));
  }
  const int safe = 63 - static_cast<int>(std::bit_width(weights.size())) - top;
  std::uint64_t most = weights.size();  // what was cut off
  for (const double weight : weights) most += fixed_point(weight, safe);
  return safe + std::countl_zero(most) - 1;
}

class Weighted final : public Order {
 public:
  explicit Weighted(const ScheduleOptions& options) : options_(options) {}

  SampleId sample_at(Epoch epoch, Position position) const override {
    return weighted_draw(options_, epoch, position, 0);
  }
  Position position_of(Epoch, SampleId) const override {
    FORELOAD_CHECK(false, "a sample that is drawn with replacement has no position of its own");
  }

 private:
  ScheduleOptions options_;
};

}  // namespace

WeightTable::WeightTable(std::vector<std::uint64_t> ends) : ends_(std::move(ends)) {
  Hasher hasher;
  hasher.add("foreload weights 1");
  for (const std::uint64_t end : ends_) hasher.add(end);
  hash_ = hasher.value();
}

Result<WeightTable> WeightTable::create(std::span<const double> weights) {
  if (weights.empty()) return Error{Code::kInvalid, "weights: there are none; give one number per sample"};
  bool any = false;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i]) || weights[i] < 0) {
      return Error{
          Code::kInvalid,
          fmt::format("weights: that of sample {} is {}; a weight is a finite number of at least 0", i, weights[i])};
    }
    any = any || weights[i] > 0;
  }
  if (!any) {
    return Error{Code::kInvalid, fmt::format("weights: all {} are 0, so no sample can be drawn; give at least one more",
                                             weights.size())};
  }
  const int shift = choose_shift(weights);
  std::vector<std::uint64_t> ends;
  ends.reserve(weights.size());
  std::uint64_t sum = 0;
  for (const double weight : weights) {
    sum += weight > 0 ? std::max<std::uint64_t>(fixed_point(weight, shift), 1) : 0;
    ends.push_back(sum);
  }
  return WeightTable(std::move(ends));
}

SampleId WeightTable::find(std::uint64_t number) const {
  FORELOAD_CHECK(number < total(), "a draw lies below the sum of the weights");
  return static_cast<SampleId>(std::upper_bound(ends_.begin(), ends_.end(), number) - ends_.begin());
}

SampleId weighted_draw(const ScheduleOptions& options, Epoch epoch, Position position, unsigned k) {
  const WeightTable& weights = *options.weights;
  return weights.find(KeyedRandom(options.seed, epoch, position, kDrawOp - k).below(weights.total()));
}

std::unique_ptr<Order> weighted_order(const ScheduleOptions& options) {
  return std::make_unique<Weighted>(options);
}

}  // namespace foreload
