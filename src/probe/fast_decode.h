// measure_fast_decode: how far the pixels of Decode::kFast are from those of Decode::kExact, after RandomResizedCrop to
// 8-bit pixels with the same boxes; over all crops, and over those that fast really decodes at a fraction.
#pragma once

#include <cstdint>
#include <functional>

#include "foreload/result.h"
#include "probe/prep_pictures.h"

namespace foreload {

struct PixelDifference {
  std::uint64_t crops = 0;
  double mean_levels = 0;  // mean absolute difference
  double mean_square = 0;

  double psnr() const;  // dB, of the mean square over all crops. REQUIRES: mean_square > 0
};

struct FastDecode {
  PixelDifference all;
  PixelDifference scaled;    // crops that were decoded at a fraction
  double worst_psnr = 0;     // of a single scaled crop
  double exact_seconds = 0;  // CPU time of all crops
  double fast_seconds = 0;

  double scaled_share() const { return static_cast<double>(scaled.crops) / static_cast<double>(all.crops); }
};

struct FastDecodeOptions {
  unsigned side = 224;         // of the result
  std::uint64_t crops = 500;   // at least so many; whole rounds over the pictures
  std::function<bool()> stop;  // asked between pictures; true ends with kCancelled
};

Result<FastDecode> measure_fast_decode(const PrepPictures& pictures, const FastDecodeOptions& options);

}  // namespace foreload
