// The markers of a JPEG file, read without a decoder: size, number of scans, whether the file is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "foreload/result.h"
#include "foreload/source.h"

namespace foreload {

struct JpegScans {
  std::uint32_t count = 0;
  bool complete = false;  // the end-of-image marker was found
};

// Width and height of the first frame header. kBadSample when there is none.
Result<Dimensions> jpeg_frame_size(std::span<const std::byte> bytes);

// Counts the scans of a file from `data`, the first byte of its first scan's data, on. Stops at most + 1.
JpegScans count_jpeg_scans(std::span<const std::byte> data, std::uint32_t most);

// Whether `data` contains an end-of-image marker. Looks from the end: quick when the file is complete.
bool has_jpeg_end(std::span<const std::byte> data);

}  // namespace foreload
