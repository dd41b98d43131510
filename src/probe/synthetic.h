// Synthetic photographs: JPEGs whose sizes, shapes, bytes per pixel and cost of decoding are close to
// ImageNet's. Image `index` is a pure function of (seed, index), so a dataset can be made in parallel and
// in any order. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "foreload/types.h"
#include "prep/jpeg_encode.h"

namespace foreload {

// Grows by one whenever the same (seed, index) yields another image than before.
inline constexpr unsigned kSyntheticVersion = 1;

// What an image is going to be, before its content is made.
struct SyntheticSpec {
  unsigned width = 0;
  unsigned height = 0;
  JpegStyle style;
  Bytes target_bytes = 0;  // the file comes out within about 10 % of it
};

SyntheticSpec synthetic_spec(std::uint64_t seed, std::uint64_t index);
std::vector<std::byte> synthetic_jpeg(std::uint64_t seed, std::uint64_t index);

}  // namespace foreload
