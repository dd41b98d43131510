// Splice: the small, valid JPEG that holds just the runs of a crop-addressable JPEG which cover a box. Its pixels
// inside the box are those of the whole picture. Pure functions; nothing in the file is trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "foreload/result.h"
#include "foreload/types.h"
#include "prep/geometry.h"
#include "prep/jpeg_layout.h"

namespace foreload {

// One axis of the question which MCUs a box needs. Lengths are pixels of the picture at the scale of the box.
struct McuAxis {
  std::uint32_t mcu = 8;       // pixels of an MCU
  std::uint32_t pixels = 0;    // of the picture
  bool subsampled = false;     // a component has fewer samples than the picture has pixels
  std::uint32_t together = 1;  // MCUs that can only be taken together; the result counts these
};

// The MCUs that cover `length` pixels from `first` on, and one more on a side where upsampling looks across the edge.
McuRange cover_rows(const McuAxis& axis, std::uint32_t first, std::uint32_t length);
// The same; and never so few that libjpeg would choose another way of upsampling.
McuRange cover_columns(const McuAxis& axis, std::uint32_t first, std::uint32_t length);

struct JpegSplice {
  McuRange runs;  // of each row
  McuRange rows;
  Dimensions size;  // of the small picture, at full size
  Box box;          // where the box is in it, at the scale of the box
};

// The splice for `box`, a part of the picture decoded at eighths/8 of its size.
JpegSplice plan_jpeg_splice(const JpegLayout& layout, const Box& box, std::uint32_t eighths);

// Whether so much of the file is in the splice that decoding the file itself is as quick.
bool covers_most(const JpegLayout& layout, const JpegSplice& splice);

// An upper bound of what write_jpeg_splice() writes. REQUIRES: could_be_jpeg_row_offsets() of `rows`.
Bytes jpeg_splice_bytes(const JpegLayout& layout, const JpegSplice& splice, std::span<const std::uint32_t> rows);

// Writes the small JPEG to `out` and returns its length; an error when the restart markers between the row offsets
// are not complete and in order. JFIF, Adobe and ICC segments are copied, other application segments are not.
// REQUIRES: could_be_jpeg_row_offsets() of `rows`; `out` has jpeg_splice_bytes().
Result<std::size_t> write_jpeg_splice(std::span<const std::byte> bytes, const JpegLayout& layout,
                                      const JpegSplice& splice, std::span<const std::uint32_t> rows,
                                      std::span<std::byte> out);

}  // namespace foreload
