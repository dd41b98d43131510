// encode_jpeg: pixels to a JPEG file in memory: for shrunk images, generated datasets, benches and tests.
// Pure and deterministic; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace foreload {

enum class JpegColour {
  kGray,  // rows hold Y
  kYcc,   // rows hold Y Cb Cr
  kRgb,   // rows hold R G B, stored as Y Cb Cr
  kCmyk,  // rows hold C M Y K, inverted as Adobe writes them
  kYcck,  // the same rows, stored as YCCK
};

unsigned channels(JpegColour colour);

struct JpegStyle {
  JpegColour colour = JpegColour::kYcc;
  unsigned h_sampling = 1;  // of the first channel against the others: 2 × 2 is 4:2:0
  unsigned v_sampling = 1;
  unsigned quality = 90;  // 1 … 100
  bool progressive = false;
};

// Each row holds `width` pixels, channels interleaved. REQUIRES: width and the number of rows are 1 … 65500.
std::vector<std::byte> encode_jpeg(std::span<const std::uint8_t* const> rows, unsigned width, const JpegStyle& style);

}  // namespace foreload
