// Depth changes at the end of a period in which most of what ended was limited by it: the others say nothing about it.
// The first depth is measured before it is doubled: a store that throttles has answered by then.
#include "policy/depth.h"

#include <algorithm>
#include <utility>

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kCalmPeriods = 50;      // before a failed trial is repeated
constexpr Duration kOneComplaint = 100ms;  // answers within so long complain about the same crowd
constexpr Duration kLately = 1s;

}  // namespace

DepthControl::DepthControl(unsigned most, const DepthOptions& options)
    : options_(options), most_(most), depth_(std::min(options.first, most)), calm_periods_(kCalmPeriods) {}

bool DepthControl::was_throttled(Time now) const {
  return throttled_at_ >= Time{0} && now - throttled_at_ < kLately;
}

Time DepthControl::calm_again() const {
  return throttled_at_ + kLately;
}

void DepthControl::begin_period(Time now) {
  period_start_ = now;
  period_bytes_ = 0;
  period_done_ = period_limited_ = 0;
}

bool DepthControl::on_done(Time now, Bytes bytes, bool limited) {
  if (period_start_ < Time{0}) {
    begin_period(now);
    return false;
  }
  period_bytes_ += bytes;
  ++period_done_;
  if (limited) ++period_limited_;
  if (now - period_start_ < options_.period || period_done_ < 2 * depth_) return false;
  end_period(now);
  return true;
}

void DepthControl::end_period(Time now) {
  rate_ = static_cast<double>(period_bytes_) / std::chrono::duration<double>(now - period_start_).count();
  const bool limited = period_limited_ * 2 > period_done_;
  begin_period(now);
  if (!limited) return;
  const unsigned tried_from = std::exchange(tried_from_, 0);
  if (tried_from != 0 && rate_ < rate_before_ * options_.worthwhile) {
    depth_ = tried_from;
    calm_periods_ = 0;
  } else {
    open(tried_from != 0, now);
  }
}

void DepthControl::open(bool trial_went_well, Time now) {
  if (is_careful_) {
    if (!was_throttled(now)) depth_ = std::min(depth_ + std::max(1u, depth_ / 8), most_);
    return;
  }
  if (!trial_went_well && calm_periods_ < kCalmPeriods) {
    ++calm_periods_;
    return;
  }
  if (depth_ == most_) return;
  tried_from_ = depth_;
  rate_before_ = rate_;
  depth_ = std::min(2 * depth_, most_);
  period_start_ = Time{-1};  // what ends next belongs to the smaller depth
}

void DepthControl::on_throttled(Time now) {
  const bool same = throttled_at_ >= Time{0} && now - throttled_at_ < kOneComplaint;
  if (!same) {
    throttled_at_ = now;
    depth_ = std::max(1u, depth_ / 2);
  }
  is_careful_ = true;
  tried_from_ = 0;
  period_start_ = Time{-1};
}

}  // namespace foreload
