#include "policy/pacing.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

namespace foreload {
namespace {

constexpr std::uint64_t kSmallLookahead = 256;  // samples, so that batches of one sample are read ahead too
// The farther tier must be this much quicker: what the nearer one has costs others nothing.
constexpr int kWorthLeaving = 4;
// And win this much time: a few small reads say little on a machine whose cores are busy.
constexpr Duration kLeastWon = std::chrono::milliseconds(500);
constexpr Bytes kLeastSaved = 4;                                   // a quarter of the sample
constexpr Bytes kLeastCut = 8;                                     // an eighth: a cut costs no request
constexpr double kCutRate = 2.5e9;                                 // bytes per second of samples that a host cuts
constexpr Bytes kLargeSample = 4_MiB;                              // few pictures are larger
constexpr Duration kRequestCost = std::chrono::microseconds(200);  // of one read more, for the machine and the storage
// Steps over which the learner's pace is averaged. One that had to wait seems slower than it is: shorter ones count
// more.
constexpr int kStepMemory = 8;
constexpr int kShortStepMemory = 2;

}  // namespace

Pacer::Pacer(const PacerOptions& options)
    : options_(options),
      depths_{DepthControl(options.max_depth), DepthControl(options.max_depth), DepthControl(options.max_depth)} {}

std::uint64_t Pacer::lookahead_batches() const {
  const std::uint64_t batch = std::max<std::uint64_t>(options_.batch, 1);
  const std::uint64_t wanted = std::max<std::uint64_t>(kSmallLookahead, 2ull * options_.max_depth);
  return (wanted + batch - 1) / batch;
}

Origin Pacer::route(Time now, Origin nearer, Bytes length, std::uint64_t batches_left) const {
  const auto [before, source] = std::pair(queued_[index(nearer)], queued_[index(Origin::kSource)]);
  const auto near = costs_[index(nearer)].estimate(length, before);
  // Behind as long a queue: a consumer that takes all that it gets always has one, and the source is not there to
  // shorten it.
  const auto far = costs_[index(Origin::kSource)].estimate(length, std::max(before, source));
  if (!near || !far) return nearer;
  const bool in_time = *near <= pace_.slack(now, batches_left);
  const Duration won = *near - *far;
  const bool is_better = won > kLeastWon && won > (kWorthLeaving - 1) * *far;
  return !in_time && is_better ? Origin::kSource : nearer;
}

// What is left of the time until a batch is needed, when its bytes and all before them are read at full speed.
Duration Pacer::spare(Time now, Origin origin, const Need& need) const {
  const auto work = costs_[index(origin)].estimate(need.bytes, 0);
  return pace_.slack(now, need.left) - work.value_or(Duration{});
}

Need Pacer::tightest(Time now, Origin origin, std::span<const Bytes> lacking, Bytes filling) const {
  Need tightest{.left = lacking.size(), .bytes = std::reduce(lacking.begin(), lacking.end(), filling)};
  Bytes sum = filling;
  for (std::uint64_t left = 0; left < lacking.size(); ++left) {
    sum += lacking[left];
    const Need need{left, sum};
    if (lacking[left] > 0 && spare(now, origin, need) < spare(now, origin, tightest)) tightest = need;
  }
  return tightest;
}

// Before enough was seen to say what a read costs, no open batch may lack anything.
bool Pacer::has_time(Time now, Origin origin, Bytes length, const Need& need) const {
  if (need.left == Need::kNobody) return true;
  const auto cost = costs_[index(origin)].transfer(length);
  if (!cost && need.left < options_.slots) return false;
  return is_spare(spare(now, origin, need), cost.value_or(Duration{}));
}

// Between hosts the network is taken for the scarcer resource until it has been seen to be quicker than the cutting.
bool Pacer::part_pays(Origin origin, Bytes whole, Bytes part) const {
  const bool is_cut = origin == Origin::kPeer;
  if (part + whole / (is_cut ? kLeastCut : kLeastSaved) > whole) return false;
  const auto saved = costs_[index(origin)].transfer(whole - part);
  if (!is_cut) return saved && *saved >= kRequestCost;
  return !saved || *saved >= std::chrono::duration<double>(static_cast<double>(whole) / kCutRate);
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
    const Duration step = now - pace_.since;
    const Duration change = step - pace_.step;
    pace_.step =
        pace_.step == Duration{} ? step : pace_.step + change / (change < Duration{} ? kShortStepMemory : kStepMemory);
  }
  pace_.since = now;
}

}  // namespace foreload
