#include "probe/windows.h"

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "probe/loader_rates.h"

namespace foreload {
namespace {

constexpr double kDoubt = 0.05;  // that the median lies outside

// How many values from each end can be left out. Each lies below the median with probability 1/2, so the median is
// outside of value k … n-1-k with twice the probability of at most k heads in n throws. Nothing: too few values.
std::optional<std::size_t> left_out(std::size_t n) {
  double term = 1;  // probability of i heads
  for (std::size_t i = 0; i < n; ++i) term /= 2;
  double tail = 0;
  std::optional<std::size_t> out;
  for (std::size_t i = 0; 2 * i + 1 < n; ++i) {
    tail += term;
    if (2 * tail > kDoubt) break;
    out = i;
    term *= static_cast<double>(n - i) / static_cast<double>(i + 1);
  }
  return out;
}

}  // namespace

Figure figure_of(std::vector<double> windows) {
  const std::size_t n = windows.size();
  if (n < kLeastWindows) return {};
  std::sort(windows.begin(), windows.end());
  Figure figure{.value = median(windows), .low = 0, .high = 0, .windows = static_cast<unsigned>(n)};
  if (const auto out = left_out(n)) {
    figure.low = windows[*out];
    figure.high = windows[n - 1 - *out];
  } else {
    const double range = windows.back() - windows.front();
    figure.low = std::max(windows.front() - range, 0.0);
    figure.high = windows.back() + range;
  }
  return figure;
}

Allowance::Allowance(const MeasureOptions& how) : how_(how), start_(now()) {}

Status Allowance::go_on() const {
  if (how_.stop && how_.stop()) return Error{Code::kCancelled, "the analysis was stopped"};
  return {};
}

Time Allowance::deadline(double share) const {
  const auto part = Duration(static_cast<std::int64_t>(share * static_cast<double>(how_.time.count())));
  return std::min(now() + part, start_ + how_.time);
}

double Allowance::used() const {
  return seconds(now() - start_) / std::max(seconds(how_.time), 1e-9);
}

Bytes Allowance::bytes(double share) const {
  const auto part = static_cast<Bytes>(share * static_cast<double>(how_.most_bytes));
  return std::min(part, how_.most_bytes - std::min(how_.most_bytes, spent_));
}

void Allowance::tell(const std::string& stage, double share) const {
  if (how_.progress) how_.progress(stage, share);
}

Error no_time_left() {
  return {Code::kInvalid,
          "the machine was too busy, or storage too slow, for it in the time of an analysis: again when it is idle"};
}

Result<Figure> repeat_windows(const Allowance& allowance, Time deadline, const Window& window, const WindowRule& rule) {
  std::vector<double> values;
  while (values.size() < rule.most && now() < deadline) {
    FORELOAD_TRY(allowance.go_on());
    FORELOAD_ASSIGN(const std::optional<double> value, window());
    if (!value) break;
    values.push_back(*value);
    const Figure figure = figure_of(values);
    if (values.size() >= rule.least && figure.high - figure.low <= rule.sure * figure.value) break;
  }
  return figure_of(std::move(values));
}

}  // namespace foreload
