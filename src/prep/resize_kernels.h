// The two inner loops of a resize. Integers only, so every variant gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "prep/resize.h"

namespace foreload {

inline constexpr int kWeightBits = 22;  // after the point

// One row along x. Reads up to kRowSlack bytes beyond the input window and writes as many beyond the output.
struct RowResize {
  const std::uint8_t* in;
  std::uint8_t* out;
  const RowWeights& weights;
};

// One output row along y: the sum of `count` rows, `bytes` wide (a multiple of 64), which stand in a ring.
struct ColumnResize {
  const std::uint8_t* ring;
  std::size_t row_bytes;
  std::uint32_t ring_rows;
  std::uint32_t first;  // ring slot of the first row
  const std::int32_t* weights;
  std::uint32_t count;
  std::uint8_t* out;
  std::size_t bytes;
};

struct ResizeKernels {
  const char* name;
  void (*row)(const RowResize&);
  void (*column)(const ColumnResize&);
};

// For any machine; the twin that all others must equal.
const ResizeKernels& plain_resize_kernels();
// Null where they do not exist or can not run.
const ResizeKernels* avx2_resize_kernels();
// The fastest that this machine runs.
const ResizeKernels& best_resize_kernels();

}  // namespace foreload
