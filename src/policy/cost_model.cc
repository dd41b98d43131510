// Latency is a minimum that rises slowly towards what is seen, bandwidth a maximum that falls slowly: both are what the
// origin can do, not what queues in front of it make of that.
#include "policy/cost_model.h"

#include <algorithm>

namespace foreload {
namespace {

constexpr std::uint64_t kEnoughReads = 256;
constexpr int kRise = 64;        // reads until a higher latency is believed
constexpr double kDecay = 0.98;  // of the bandwidth, per window

}  // namespace

void OriginCost::on_read_done(Duration took) {
  latency_ = reads_++ == 0 ? took : std::min(took, latency_ + (took - latency_) / kRise);
}

void OriginCost::on_rate(double bytes_per_second) {
  bandwidth_ = std::max(bytes_per_second, bandwidth_ * kDecay);
}

std::optional<Duration> OriginCost::transfer(Bytes bytes) const {
  if (reads_ < kEnoughReads || bandwidth_ <= 0) return std::nullopt;
  const std::chrono::duration<double> seconds(static_cast<double>(bytes) / bandwidth_);
  return std::chrono::duration_cast<Duration>(seconds);
}

std::optional<Duration> OriginCost::estimate(Bytes bytes, Bytes queued) const {
  const auto taken = transfer(bytes + queued);
  return taken ? std::optional<Duration>(latency_ + *taken) : std::nullopt;
}

}  // namespace foreload
