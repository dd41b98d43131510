// Sweep: one parameter of a cluster takes many values, everything else stays. The points are a curve as what_if.h has
// it, with the knee behind which more brings nothing. Pure; running the points is the caller's.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/cluster_run.h"
#include "lab/what_if.h"

namespace foreload {

struct Sweep {
  const Parameter* parameter = nullptr;
  std::vector<double> values;  // rising
};

inline constexpr std::size_t kMostPoints = 64;

// "hosts=1..512" (doubling), "cores=1..16" (one by one where that is not too many), "cache=0..64GB", or a list:
// "hosts=1,3,9". kInvalid says what is wrong.
Result<Sweep> parse_sweep(std::string_view text);

// How long a simulation takes on one core, about: seconds.
double estimate_seconds(const ClusterSetup& setup);

struct SweepPoint {
  double x = 0;
  RunReport report;
};

// Of the last epoch's rate, by value.
Curve sweep_curve(const Sweep& sweep, std::span<const SweepPoint> points, double here);

// The first x from which on no larger one is faster by more than 2 %. Nothing: it is the last, or there are none.
std::optional<double> find_knee(std::span<const CurvePoint> points);

}  // namespace foreload
