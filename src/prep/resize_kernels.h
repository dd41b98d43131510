// The inner loops of resize and output. A sum of weighted pixels is an integer and an element of the tensor a function
// of 256 values, so every variant gives the same bits; which one runs is decided once per picture.
#pragma once

#include <cstddef>
#include <cstdint>

#include "prep/output.h"
#include "prep/resize.h"

namespace foreload {

inline constexpr int kWeightBits = 22;  // after the point

// Between the passes a row is three planes, R, G and B, with one word per pixel: the pixel p, and p · 2^7 in the upper
// half. Multiplied with a weight that is split the same way, one multiply-add of 16-bit pairs gives p · weight.
inline constexpr int kPairBits = 7;
inline constexpr std::uint32_t kSpread = 1u | 1u << (16 + kPairBits);

constexpr std::uint32_t paired_weight(std::int32_t weight) {
  const std::int32_t high = weight >> kPairBits < 32767 ? weight >> kPairBits : 32767;
  return static_cast<std::uint32_t>(weight - (high << kPairBits)) | static_cast<std::uint32_t>(high) << 16;
}

struct Planes {
  std::uint32_t* data;
  std::size_t stride;  // words from one plane to the next; a multiple of kMostLanes
};
inline constexpr std::size_t kMostLanes = 8;

// One row along x. Reads up to kRowSlack bytes beyond the input window; fills the planes up to a multiple of `lanes`.
struct RowResize {
  const std::uint8_t* in;
  Planes out;
  const RowWeights& weights;
};

// A row that is not resized along x.
struct RowSplit {
  const std::uint8_t* in;
  std::size_t width;
  bool mirrored;
  Planes out;
};

// One output row along y: the weighted sum of `count` rows of planes.
struct ColumnResize {
  const std::uint32_t* const* rows;
  const std::uint32_t* weights;  // paired_weight() each
  std::uint32_t count;
  std::size_t stride;  // of the planes
  std::size_t width;   // pixels
};

// A row of pixels that becomes a row of the tensor.
struct RowWrite {
  const std::uint8_t* in;
  std::size_t width;
  bool mirrored;
};

struct PixelKernels {
  const char* name;
  std::uint32_t lanes;  // pixels that are made at once: 4 or 8
  void (*row)(const RowResize&);
  void (*split)(const RowSplit&);
  void (*column)(const ColumnResize&, std::uint8_t* out);  // to a row as of rows.h
  // The last pass, straight into the tensor. REQUIRES: the tables are made for these kernels.
  void (*column_to_tensor)(const ColumnResize&, const TensorRow&);
  void (*write)(const RowWrite&, const TensorRow&);
  // After the last row of a tensor, before another thread reads it.
  void (*flush)();
};

// For any machine; the twin that all others must equal.
const PixelKernels& plain_kernels();
// The fastest that this machine runs.
const PixelKernels& pixel_kernels();

}  // namespace foreload
