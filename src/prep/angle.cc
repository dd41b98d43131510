// Whole quarter turns are taken off in degrees, which loses nothing; what remains, at most 45 degrees, goes into the
// power series.
#include "prep/angle.h"

#include "base/check.h"

namespace foreload {

namespace {

constexpr double kRadians = 3.14159265358979323846 / 180.0;

// x - x^3/3! + … - x^19/19!, the smallest term first.
double sine(double x) {
  const double square = x * x;
  double sum = 0.0;
  for (int n = 18; n >= 2; n -= 2) sum = (1.0 - sum) * square / (n * (n + 1));
  return x - x * sum;
}

double cosine(double x) {
  const double square = x * x;
  double sum = 0.0;
  for (int n = 17; n >= 1; n -= 2) sum = (1.0 - sum) * square / (n * (n + 1));
  return 1.0 - sum;
}

}  // namespace

SinCos sin_cos(double degrees) {
  FORELOAD_CHECK(degrees >= -1e6 && degrees <= 1e6, "the ops check the range of angles");
  const double turns = degrees / 90.0;
  const auto quarter = static_cast<long>(turns + (turns < 0 ? -0.5 : 0.5));
  const double rest = (degrees - static_cast<double>(quarter) * 90.0) * kRadians;
  const double sin = sine(rest);
  const double cos = cosine(rest);
  switch (quarter & 3) {
    case 0:
      return {sin, cos};
    case 1:
      return {cos, -sin};
    case 2:
      return {-sin, -cos};
    default:
      return {-cos, sin};
  }
}

}  // namespace foreload
