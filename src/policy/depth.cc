#include "policy/depth.h"

#include <algorithm>
#include <chrono>

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kFirstDepth = 16;
constexpr Duration kWindow = 40ms;
constexpr double kWorthwhile = 1.08;   // a doubled depth must bring this much
constexpr unsigned kCalmWindows = 50;  // before a failed trial is repeated

}  // namespace

DepthControl::DepthControl(unsigned max_depth) : max_depth_(max_depth), depth_(std::min(kFirstDepth, max_depth)) {}

bool DepthControl::on_read_done(Time now, Bytes bytes, unsigned in_flight) {
  if (window_start_ < Time{0}) window_start_ = now;
  window_bytes_ += bytes;
  ++window_reads_;
  if (in_flight + 1 >= depth_) ++window_limited_;
  if (now - window_start_ < kWindow || window_reads_ < 2 * depth_) return false;
  end_window(now);
  return true;
}

void DepthControl::end_window(Time now) {
  rate_ = static_cast<double>(window_bytes_) / std::chrono::duration<double>(now - window_start_).count();
  const bool limited = window_limited_ * 2 > window_reads_;
  window_start_ = now;
  window_bytes_ = 0;
  window_reads_ = window_limited_ = 0;

  const bool trial_failed = tried_from_ != 0 && limited && rate_ < rate_before_ * kWorthwhile;
  if (trial_failed) {
    depth_ = tried_from_;
    calm_windows_ = 0;
    tried_from_ = 0;
  } else if (limited && (tried_from_ != 0 || ++calm_windows_ > kCalmWindows || rate_before_ == 0)) {
    tried_from_ = depth_;
    rate_before_ = rate_;
    depth_ = std::min(depth_ * 2, max_depth_);
    if (depth_ == tried_from_) tried_from_ = 0;
  }
}

}  // namespace foreload
