// Sine and cosine from plain IEEE operations, so that a drawn angle turns a picture the same way on every machine
// (golden vectors in angle_test.cc). No libm.
#pragma once

namespace foreload {

struct SinCos {
  double sin;
  double cos;
};

// Error below 3e-16; exact at multiples of 90. REQUIRES: |degrees| <= 1e6.
SinCos sin_cos(double degrees);

}  // namespace foreload
