// Chooses the strategy (order_*.cc) and guards its domain.
#include "foreload/schedule.h"

#include "base/check.h"
#include "base/random.h"
#include "plan/order.h"

namespace foreload {
namespace {

std::unique_ptr<Order> once(const ScheduleOptions& options) {
  if (options.weights) return weighted_order(options);
  return options.reshuffle < 1 ? partial_order(options) : full_order(options);
}

std::uint64_t base_positions(const ScheduleOptions& options) {
  return options.weights && options.epoch_samples != 0 ? options.epoch_samples : options.samples;
}

}  // namespace

Schedule::Schedule(const ScheduleOptions& options) : options_(options), size_(base_positions(options) * options.echo) {
  const bool partial = options.reshuffle < 1;
  FORELOAD_CHECK(options.weights == nullptr || options.weights->size() == options.samples,
                 "the options were checked: one weight per sample");
  FORELOAD_CHECK((options.weights == nullptr && !partial) || options.shuffle,
                 "the options were checked: a random order is shuffled");
  FORELOAD_CHECK(!partial || (options.weights == nullptr && options.echo == 1),
                 "the options were checked: homes are for samples that come once");
  FORELOAD_CHECK(options.echo >= 1 && (options.echo == 1 || options.echo_window > 0),
                 "the options were checked: an echo has a window");
  std::unique_ptr<Order> order = once(options);
  if (options.echo > 1) order = echo_order(options, std::move(order), base_positions(options));
  order_ = std::move(order);
}

SampleId Schedule::sample_at(Epoch epoch, Position position) const {
  FORELOAD_CHECK(position < size_, "positions of an epoch are 0 … size()-1");
  return order_->sample_at(epoch, position);
}

void Schedule::samples_at(Epoch epoch, Position first, std::span<SampleId> out) const {
  FORELOAD_CHECK(first <= size_ && out.size() <= size_ - first, "positions of an epoch are 0 … size()-1");
  if (!out.empty()) order_->samples_at(epoch, first, out);
}

Position Schedule::position_of(Epoch epoch, SampleId id) const {
  FORELOAD_CHECK(is_permutation(), "only in a permutation each sample has one position");
  FORELOAD_CHECK(id < options_.samples, "sample ids are 0 … size()-1");
  return order_->position_of(epoch, id);
}

SampleId Schedule::substitute(Epoch epoch, Position position, unsigned k) const {
  FORELOAD_CHECK(options_.samples > 0, "an empty dataset has no substitutes");
  FORELOAD_CHECK(k >= 1, "substitutes count from 1");
  if (options_.weights) return weighted_draw(options_, epoch, position, k);
  return KeyedRandom(options_.seed, epoch, position, kDrawOp - k).below(options_.samples);
}

}  // namespace foreload
