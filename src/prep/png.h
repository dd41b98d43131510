// PNG through libpng's row interface: all colour types and depths, interlaced or not. Rows below the box are
// not decoded; interlaced pictures are kept whole while they are read.
#pragma once

#include <memory>
#include <span>

#include "prep/image.h"

namespace foreload {

bool is_png(std::span<const std::byte> bytes);
Result<Dimensions> png_dimensions(std::span<const std::byte> bytes);
std::unique_ptr<ImageDecoder> make_png_decoder();

}  // namespace foreload
