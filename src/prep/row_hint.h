// RowHint: what a record index knows about a crop-addressable JPEG, and how much of it is there at all: on slow storage
// only the header and the rows of a crop are read, and what lies between them is not defined; and another host may have
// sent only what it cut out for a crop (prep/jpeg_cut).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "foreload/source.h"
#include "prep/geometry.h"

namespace foreload {

// The picture of which there is only the cut for this box.
struct CutHint {
  Dimensions picture;
  Box box;
};

struct RowHint {
  std::span<const std::uint32_t> offsets{};  // Source::rows; checked, and ignored when they do not fit
  std::uint32_t first = 0;                   // rows first … end-1 are there
  std::uint32_t end = std::numeric_limits<std::uint32_t>::max();
  std::optional<CutHint> cut{};  // instead of all the above

  bool is_partial() const { return first > 0 || std::size_t{end} + 1 < offsets.size(); }
};

// The rows of MCUs that hold the rows `wanted` of a picture's pixels, and those beside them that upsampling may look
// at. Nothing when the offsets do not tell how high an MCU is. REQUIRES: `wanted` is not empty and lies in the picture.
std::optional<RowHint> rows_around(std::span<const std::uint32_t> offsets, Dimensions picture, Interval wanted);

}  // namespace foreload
