// JpegLayout: where the parts of a crop-addressable JPEG are, found by our own parser of untrusted bytes. A JPEG
// is crop-addressable when restart markers divide every row of MCUs into equal runs, each of which can be decoded
// alone. Offsets count from the first byte of the file. Pure functions; usable from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "foreload/result.h"
#include "foreload/source.h"

namespace foreload {

struct JpegSampling {
  std::uint8_t h = 1;
  std::uint8_t v = 1;

  bool operator==(const JpegSampling&) const = default;
};

struct JpegLayout {
  Dimensions size;
  std::uint32_t components = 0;            // 1 or 3
  std::array<JpegSampling, 3> sampling{};  // as the file says, though an MCU of one component is one block
  bool subsampled_x = false;               // a component has fewer columns (rows) than the picture
  bool subsampled_y = false;
  std::uint32_t mcu_width = 0;  // pixels
  std::uint32_t mcu_height = 0;
  std::uint32_t mcus_per_row = 0;
  std::uint32_t mcu_rows = 0;
  std::uint32_t interval = 0;  // MCUs of a run; divides mcus_per_row
  std::uint32_t frame = 0;     // where the frame header has its height (two bytes) and then its width
  std::uint32_t scan = 0;      // where the scan's data begins: the length of the header

  std::uint32_t runs_per_row() const { return mcus_per_row / interval; }
  std::uint32_t runs() const { return runs_per_row() * mcu_rows; }
};

// Reads the header alone; the data behind it is not looked at. An error means "not crop-addressable", with the
// reason: such a file may be a good picture, or none at all.
Result<JpegLayout> parse_jpeg_layout(std::span<const std::byte> bytes);

// Where the first run of each row of MCUs begins, and at last where the end-of-image marker begins: mcu_rows + 1
// offsets. An error when the markers of the runs are not complete and in order. A record index keeps these.
Status jpeg_row_offsets(std::span<const std::byte> bytes, const JpegLayout& layout,
                        std::vector<std::uint32_t>& offsets);

// MCUs, runs or rows first … end-1.
struct McuRange {
  std::uint32_t first = 0;
  std::uint32_t end = 0;

  std::uint32_t count() const { return end - first; }
  bool operator==(const McuRange&) const = default;
};

// Whether offsets that someone else wrote down are in order and inside a file of that length.
bool could_be_jpeg_row_offsets(Bytes length, const JpegLayout& layout, std::span<const std::uint32_t> offsets);
// And whether those of these rows, and of the end of the last one, stand behind the right markers. What lies between is
// not looked at. REQUIRES: could_be_jpeg_row_offsets().
bool are_jpeg_row_offsets(std::span<const std::byte> bytes, const JpegLayout& layout,
                          std::span<const std::uint32_t> offsets, McuRange rows);

}  // namespace foreload
