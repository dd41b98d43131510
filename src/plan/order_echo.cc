// Blocks of `window` positions of the base order; the last block may be shorter.
//
//   base positions  bw … bw+n-1                 n = window, or what is left
//   positions       bwe … bwe+ne-1              place q of a block ──keyed bijection of ne──► q', base position bw + q'
//   mod n
//
// So each base position stands e times in its block and nowhere else. Without shuffle a block comes e times in order.
#include <algorithm>

#include "base/check.h"
#include "plan/keyed_bijection.h"
#include "plan/order.h"

namespace foreload {
namespace {

constexpr std::uint32_t kEchoTag = 0x6563686f;

class Echo final : public Order {
 public:
  Echo(const ScheduleOptions& options, std::unique_ptr<Order> base, std::uint64_t positions)
      : base_(std::move(base)),
        positions_(positions),
        seed_(options.seed),
        shuffle_(options.shuffle),
        echo_(options.echo),
        window_(options.echo_window) {}

  SampleId sample_at(Epoch epoch, Position position) const override {
    const std::uint64_t block = position / echo_ / window_;
    const Position first = block * window_;
    const std::uint64_t count = std::min(window_, positions_ - first);
    std::uint64_t place = position - first * echo_;
    if (shuffle_) {
      const OrderKey key = order_key(order_key(seed_, epoch, kEchoTag), block);
      place = KeyedBijection(count * echo_, key).forward(place);
    }
    return base_->sample_at(epoch, first + place % count);
  }
  Position position_of(Epoch, SampleId) const override {
    FORELOAD_CHECK(false, "an echoed sample has several positions");
  }

 private:
  std::unique_ptr<Order> base_;
  std::uint64_t positions_;
  std::uint64_t seed_;
  bool shuffle_;
  std::uint64_t echo_;
  std::uint64_t window_;
};

}  // namespace

std::unique_ptr<Order> echo_order(const ScheduleOptions& options, std::unique_ptr<Order> base,
                                  std::uint64_t positions) {
  return std::make_unique<Echo>(options, std::move(base), positions);
}

}  // namespace foreload
