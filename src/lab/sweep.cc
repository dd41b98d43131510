#include "lab/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace foreload {
namespace {

constexpr double kSteps = 16;            // of a range that is not doubled
constexpr double kWide = 16;             // from here on a range is doubled
constexpr double kEnough = 0.98;         // of a rate
constexpr double kPerPosition = 250e-9;  // seconds of planning and counting
constexpr double kPerBatch = 6e-6;       // of events
constexpr double kPerMeeting = 12e-9;    // of a flow with each other one that moves

Error wrong(std::string_view text, const std::string& what) {
  return {Code::kInvalid, fmt::format("sweep \"{}\": {}; sweeps are written as hosts=1..512 or cache=0,8GB,16GB",
                                      text.substr(0, 80), what)};
}

Result<double> parse_value(const Parameter& parameter, std::string_view text) {
  ClusterSetup scratch;
  FORELOAD_TRY(set_parameter(scratch, parameter.name, trimmed(text)));
  return value_of(scratch, parameter);
}

bool is_whole(const Parameter& parameter) {
  return parameter.quantity == Quantity::kCount;
}

// Both ends, and between them doubled or in equal steps.
std::vector<double> between(const Parameter& parameter, double first, double last) {
  std::vector<double> values;
  if (first > 0 && last / first >= kWide) {
    for (double x = first; x < last; x *= 2) values.push_back(x);
  } else {
    const double step =
        is_whole(parameter) ? std::max(1.0, std::ceil((last - first) / kSteps)) : (last - first) / kSteps;
    for (double x = first; x < last && values.size() < kMostPoints; x += step) values.push_back(x);
  }
  values.push_back(last);
  return values;
}

}  // namespace

Result<Sweep> parse_sweep(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return wrong(text, "it has no values");
  Sweep sweep{.parameter = find_parameter(trimmed(text.substr(0, equals))), .values = {}};
  if (sweep.parameter == nullptr) return wrong(text, "that is no parameter of a cluster");
  std::string_view rest = text.substr(equals + 1);
  if (const std::size_t dots = rest.find(".."); dots != std::string_view::npos) {
    FORELOAD_ASSIGN(const double first, parse_value(*sweep.parameter, rest.substr(0, dots)));
    FORELOAD_ASSIGN(const double last, parse_value(*sweep.parameter, rest.substr(dots + 2)));
    if (!(first < last) || std::isinf(last)) return wrong(text, "its first value is not below its last");
    sweep.values = between(*sweep.parameter, first, last);
    return sweep;
  }
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    FORELOAD_ASSIGN(const double value, parse_value(*sweep.parameter, rest.substr(0, comma)));
    sweep.values.push_back(value);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (sweep.values.size() > kMostPoints) return wrong(text, fmt::format("it has more than {} values", kMostPoints));
  }
  std::ranges::sort(sweep.values);
  sweep.values.erase(std::unique(sweep.values.begin(), sweep.values.end()), sweep.values.end());
  if (sweep.values.empty()) return wrong(text, "it has no values");
  return sweep;
}

double estimate_seconds(const ClusterSetup& setup) {
  const auto feeders = static_cast<double>(setup.world());
  const auto positions = static_cast<double>(setup.samples * setup.jobs);
  const double steps = std::ceil(static_cast<double>(setup.samples) / static_cast<double>(setup.global_batch()));
  const double each = positions * kPerPosition + steps * feeders * (kPerBatch + kPerMeeting * feeders);
  return each * static_cast<double>(setup.epochs);
}

std::optional<double> find_knee(std::span<const CurvePoint> points) {
  if (points.size() < 2) return std::nullopt;
  double best = 0;
  for (const CurvePoint& point : points) best = std::max(best, point.stalls.rate);
  const auto first =
      std::ranges::find_if(points, [&](const CurvePoint& point) { return point.stalls.rate >= kEnough * best; });
  if (first + 1 == points.end()) return std::nullopt;
  return first->x;
}

Curve sweep_curve(const Sweep& sweep, std::span<const SweepPoint> points, double here) {
  const Parameter& parameter = *sweep.parameter;
  Curve curve{parameter.name, parameter.says, "", {}, {}, {}};
  switch (parameter.quantity) {
    case Quantity::kBytes:
      curve.unit = "bytes";
      break;
    case Quantity::kByteRate:
      curve.unit = "bytes/s";
      break;
    case Quantity::kSeconds:
      curve.unit = "seconds";
      break;
    case Quantity::kRate:
      curve.unit = "per second";
      break;
    case Quantity::kCount:
    case Quantity::kShare:
      curve.unit = parameter.name;
      break;
  }
  for (const SweepPoint& point : points) {
    const EpochReport& epoch = point.report.steady();
    curve.points.push_back(
        {point.x,
         {.rate = epoch.samples_per_s, .busy = epoch.busy, .fetch = epoch.fetch_stall, .prep = epoch.prep_stall}});
  }
  if (!curve.points.empty() && here >= curve.points.front().x && here <= curve.points.back().x) curve.here = here;
  if (const auto knee = find_knee(curve.points)) {
    curve.knee = Knee{*knee, fmt::format("from {} on, more brings less than 2 %", text_of(parameter, *knee))};
  }
  return curve;
}

}  // namespace foreload
