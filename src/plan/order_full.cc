#include "plan/keyed_bijection.h"
#include "plan/order.h"

namespace foreload {
namespace {

constexpr std::uint32_t kOrderTag = 0x6f726472;  // tells this use of Philox from every other

class Shuffled final : public Order {
 public:
  explicit Shuffled(const ScheduleOptions& options) : samples_(options.samples), seed_(options.seed) {}

  SampleId sample_at(Epoch epoch, Position position) const override { return bijection(epoch).forward(position); }
  void samples_at(Epoch epoch, Position first, std::span<SampleId> out) const override {
    bijection(epoch).forward(first, out);
  }
  Position position_of(Epoch epoch, SampleId id) const override { return bijection(epoch).backward(id); }

 private:
  KeyedBijection bijection(Epoch epoch) const { return {samples_, order_key(seed_, epoch, kOrderTag)}; }

  std::uint64_t samples_;
  std::uint64_t seed_;
};

class InOrder final : public Order {
 public:
  SampleId sample_at(Epoch, Position position) const override { return position; }
  Position position_of(Epoch, SampleId id) const override { return id; }
};

}  // namespace

std::unique_ptr<Order> full_order(const ScheduleOptions& options) {
  if (!options.shuffle) return std::make_unique<InOrder>();
  return std::make_unique<Shuffled>(options);
}

}  // namespace foreload
