// JpegCopier: libjpeg's own copy of the coefficients of a JPEG, with optimised tables and restart markers. Nothing is
// checked afterwards and no metadata is kept: what a rewrite is measured against. One per thread; keeps its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "foreload/result.h"
#include "prep/jpeg_library.h"
#include "prep/jpeg_writer.h"

namespace foreload {

class JpegCopier {
 public:
  // `interval`: MCUs between two restart markers. The result is valid until the next call.
  Result<std::span<const std::byte>> copy(std::span<const std::byte> jpeg, std::uint32_t interval);

 private:
  JpegReader input_;
  JpegWriter writer_;
};

}  // namespace foreload
