// Cut: the splice of a crop-addressable JPEG as something that is sent in the file's place. Whoever has the file cuts
// it; whoever gets the cut knows the picture's size and the box beforehand, and finds from these where in the picture
// the cut is. Every pixel of the box is the one of the whole file. Pure functions; nothing is trusted.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "prep/geometry.h"
#include "prep/jpeg_layout.h"
#include "prep/jpeg_splice.h"

namespace foreload {

// Nothing: this is not a complete crop-addressable JPEG of that size, or the box is most of it; then only the whole
// file will do. Whatever a decoder would refuse of the file is found here. REQUIRES: the box is in the picture, and not
// empty.
std::optional<std::vector<std::byte>> cut_jpeg(std::span<const std::byte> jpeg, Dimensions picture, const Box& box);

// Where a cut is in its picture.
struct JpegCutPlace {
  JpegLayout whole;   // of the file that was cut
  JpegSplice splice;  // that the cut is

  // The first pixel, when the picture is decoded at eighths/8 of its size.
  std::uint32_t x(std::uint32_t eighths) const {
    return splice.runs.first * whole.interval * whole.mcu_width / 8 * eighths;
  }
  std::uint32_t y(std::uint32_t eighths) const { return splice.rows.first * whole.mcu_height / 8 * eighths; }
  // Whether it has all that a box of the picture at that scale needs. REQUIRES: the box is in that picture.
  bool covers(const Box& box, std::uint32_t eighths) const;
};

// Nothing: a JPEG with this layout is not what cut_jpeg() makes for that box of such a picture.
std::optional<JpegCutPlace> place_jpeg_cut(const JpegLayout& cut, Dimensions picture, const Box& box);

}  // namespace foreload
