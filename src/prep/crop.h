// RandomResizedCrop's random box, from integers alone.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "foreload/source.h"
#include "prep/geometry.h"

namespace foreload {

struct CropRange {
  std::int64_t scale_lo, scale_hi;          // share of the picture's area, Q32
  std::int64_t log_ratio_lo, log_ratio_hi;  // binary logarithm of width / height, Q32
  double ratio_lo, ratio_hi;

  // REQUIRES: 0 < scale <= 16; 1/256 <= ratio <= 256; each first <= second.
  static CropRange make(double scale_lo, double scale_hi, double ratio_lo, double ratio_hi);
};

// The nearest whole number to sqrt(area · share · factor).
std::uint64_t nearest_root(std::uint64_t area, std::uint64_t share_q32, std::uint64_t factor_q32);

// torchvision's get_params: ten attempts at an area and a ratio (uniform in its logarithm) whose box fits;
// then the largest central box with an allowed ratio. REQUIRES: the picture is not empty.
Box draw_crop(const CropRange& range, Dimensions picture, KeyedRandom& random);

}  // namespace foreload
