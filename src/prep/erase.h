// Erasing boxes of a finished tensor, as torchvision's RandomErasing does.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "foreload/source.h"
#include "foreload/transform.h"
#include "prep/geometry.h"

namespace foreload {

struct ImageTensor {
  std::span<std::byte> out;
  Dimensions size;
  DType dtype = DType::kF32;  // u8, f16 or f32
  Layout layout = Layout::kNchw;
};

// Sets every element of `box` to its channel's value; with `normalize`, to (value - mean) / std.
// REQUIRES: the box lies inside; u8 values are whole and 0 … 255.
void erase(const ImageTensor& tensor, const Box& box, const std::array<double, 3>& value,
           const std::optional<MeanStd>& normalize);

}  // namespace foreload
