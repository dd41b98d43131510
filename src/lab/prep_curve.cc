#include "lab/prep_curve.h"

#include <algorithm>

namespace foreload {
namespace {

constexpr unsigned kReach = 4;  // times what was measured

Figure scaled(const Figure& figure, double factor) {
  return {figure.value * factor, figure.low * factor, figure.high * factor, figure.windows};
}

// `part` of the way from one to the other.
Figure between(const Figure& from, const Figure& to, double part) {
  const auto mix = [&](double a, double b) { return a + (b - a) * part; };
  return {mix(from.value, to.value), mix(from.low, to.low), mix(from.high, to.high),
          std::min(from.windows, to.windows)};
}

// s in R(n) = n·R(1) / (1 + s·(n − 1)), from the two ends of what was measured.
double serial_share_of(const std::vector<PrepAt>& points) {
  if (points.size() < 2 || points.front().threads != 1) return 0;
  const double n = points.back().threads;
  const double ideal = n * points.front().samples_per_s.value;
  const double share = (ideal / points.back().samples_per_s.value - 1) / (n - 1);
  return std::clamp(share, 0.0, 1.0);
}

}  // namespace

PrepCurve::PrepCurve(std::span<const PrepAt> measured) {
  for (const PrepAt& point : measured) {
    if (point.threads > 0 && point.samples_per_s.known() && point.samples_per_s.value > 0) points_.push_back(point);
  }
  std::ranges::sort(points_, {}, &PrepAt::threads);
  serial_ = serial_share_of(points_);
}

unsigned PrepCurve::most_measured() const {
  return points_.empty() ? 0 : points_.back().threads;
}

unsigned PrepCurve::reach() const {
  return points_.size() < 2 ? most_measured() : kReach * most_measured();
}

Figure PrepCurve::at(double threads) const {
  const PrepAt& first = points_.front();
  if (threads <= first.threads) return scaled(first.samples_per_s, threads / first.threads);
  for (std::size_t i = 1; i < points_.size(); ++i) {
    const PrepAt& from = points_[i - 1];
    const PrepAt& to = points_[i];
    if (threads <= to.threads)
      return between(from.samples_per_s, to.samples_per_s, (threads - from.threads) / (to.threads - from.threads));
  }
  return beyond(threads);
}

Figure PrepCurve::beyond(double threads) const {
  const PrepAt& last = points_.back();
  const double within = std::min(threads, static_cast<double>(reach()));
  const double ideal = within / last.threads;
  const double loss = (1 + serial_ * (last.threads - 1)) / (1 + serial_ * (within - 1));
  return {last.samples_per_s.value * ideal * loss, last.samples_per_s.low,
          last.samples_per_s.high * threads / last.threads, last.samples_per_s.windows};
}

std::optional<unsigned> PrepCurve::sufficient(double rate, unsigned most) const {
  if (!known()) return std::nullopt;
  for (unsigned threads = 1; threads <= most; ++threads) {
    if (at(threads).value >= rate) return threads;
  }
  return std::nullopt;
}

}  // namespace foreload
