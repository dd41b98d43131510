// The first window is measured before it opens: a store that throttles has answered by then.
#include "policy/request_window.h"

#include <algorithm>
#include <chrono>

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPeriod = 100ms;
constexpr double kWorthwhile = 1.05;       // a doubled window must bring this much
constexpr unsigned kCalmPeriods = 50;      // before a failed trial is repeated
constexpr Duration kOneComplaint = 100ms;  // answers within so long complain about the same crowd
constexpr Duration kLately = 1s;

}  // namespace

RequestWindow::RequestWindow(const RequestWindowOptions& options)
    : options_(options), size_(std::min(options.first, options.most)), calm_periods_(kCalmPeriods) {}

bool RequestWindow::was_throttled(Time now) const {
  return throttled_at_ >= Time{0} && now - throttled_at_ < kLately;
}

Time RequestWindow::calm_again() const {
  return throttled_at_ + kLately;
}

void RequestWindow::on_limited(Time) {
  is_limited_ = true;
  if (is_careful_ || rate_ <= 0 || tried_from_ != 0 || calm_periods_ < kCalmPeriods || size_ == options_.most) return;
  grow();
}

void RequestWindow::grow() {
  tried_from_ = size_;
  rate_before_ = rate_;
  size_ = std::min(2 * size_, options_.most);
  period_start_ = Time{-1};  // what was measured before belongs to the smaller window
}

void RequestWindow::on_done(Time now, Bytes bytes) {
  if (period_start_ < Time{0}) {
    period_start_ = now;
    period_bytes_ = 0;
    period_requests_ = 0;
    is_limited_ = false;
    return;
  }
  period_bytes_ += bytes;
  ++period_requests_;
  if (now - period_start_ >= kPeriod && period_requests_ >= 2 * size_) end_period(now);
}

void RequestWindow::end_period(Time now) {
  rate_ = static_cast<double>(period_bytes_) / std::chrono::duration<double>(now - period_start_).count();
  if (tried_from_ != 0) {
    const bool failed = is_limited_ && rate_before_ > 0 && rate_ < rate_before_ * kWorthwhile;
    if (failed) {
      size_ = tried_from_;
      calm_periods_ = 0;
    }
    tried_from_ = 0;
  } else if (is_careful_ && is_limited_ && !was_throttled(now)) {
    size_ = std::min(size_ + std::max(1u, size_ / 8), options_.most);
  } else {
    ++calm_periods_;
  }
  period_start_ = now;
  period_bytes_ = 0;
  period_requests_ = 0;
  is_limited_ = false;
}

void RequestWindow::on_throttled(Time now) {
  const bool same = throttled_at_ >= Time{0} && now - throttled_at_ < kOneComplaint;
  if (!same) {
    throttled_at_ = now;
    size_ = std::max(1u, size_ / 2);
  }
  is_careful_ = true;
  tried_from_ = 0;
  period_start_ = Time{-1};
}

}  // namespace foreload
