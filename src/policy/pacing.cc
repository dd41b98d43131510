#include "policy/pacing.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace foreload {
namespace {

constexpr std::uint64_t kSmallLookahead = 256;  // samples, so that batches of one sample are read ahead too
// The farther tier must be this much quicker: what the nearer one has costs others nothing.
constexpr int kWorthLeaving = 4;
constexpr Bytes kLeastSaved = 4;                                   // a quarter of the sample
constexpr Bytes kLargeSample = 4_MiB;                              // few pictures are larger
constexpr Duration kRequestCost = std::chrono::microseconds(200);  // of one read more, for the machine and the storage
constexpr int kStepMemory = 8;                                     // steps over which the consumer's pace is averaged

}  // namespace

Pacer::Pacer(const PacerOptions& options)
    : options_(options), depths_{DepthControl(options.max_depth), DepthControl(options.max_depth)} {}

std::uint64_t Pacer::lookahead_batches() const {
  const std::uint64_t batch = std::max<std::uint64_t>(options_.batch, 1);
  const std::uint64_t wanted = std::max<std::uint64_t>(kSmallLookahead, 2ull * options_.max_depth);
  return (wanted + batch - 1) / batch;
}

Origin Pacer::route(Bytes length, std::uint64_t batches_left) const {
  const auto [disk, source] = std::pair(queued_[index(Origin::kDisk)], queued_[index(Origin::kSource)]);
  const auto near = costs_[index(Origin::kDisk)].estimate(length, disk);
  // Behind as long a queue: a consumer that takes all that it gets always has one, and the source is not there to
  // shorten it.
  const auto far = costs_[index(Origin::kSource)].estimate(length, std::max(disk, source));
  if (!near || !far) return Origin::kDisk;
  const bool in_time = *near <= step_ * static_cast<std::int64_t>(std::min<std::uint64_t>(batches_left, 1 << 20));
  return !in_time && *far * kWorthLeaving < *near ? Origin::kSource : Origin::kDisk;
}

bool Pacer::part_pays(Bytes whole, Bytes part) const {
  if (part + whole / kLeastSaved > whole) return false;
  const auto saved = costs_[index(Origin::kSource)].transfer(whole - part);
  return saved && *saved >= kRequestCost;
}

bool Pacer::parts_may_pay() const {
  const auto much = costs_[index(Origin::kSource)].transfer(kLargeSample);
  return much && *much >= kRequestCost;
}

bool Pacer::on_read_done(Time now, const ReadEnd& read) {
  const std::size_t origin = index(read.origin);
  Bytes& queued = queued_[index(read.asked)];
  queued -= std::min(queued, read.bytes);
  costs_[origin].on_read_done(read.took);
  const unsigned before = depth(read.origin);
  if (depths_[origin].on_read_done(now, read.bytes, read.in_flight)) {
    costs_[origin].on_rate(depths_[origin].bytes_per_second());
  }
  return depth(read.origin) != before;
}

// The first slots are opened at once, whatever the consumer does; after that every one is a batch that it has used up.
void Pacer::on_slot_opened(Time now) {
  if (opened_++ >= options_.slots) {
    const Duration step = now - last_opened_;
    step_ = step_ == Duration{} ? step : step_ + (step - step_) / kStepMemory;
  }
  last_opened_ = now;
}

}  // namespace foreload
