// JPEG through libjpeg-turbo: baseline, progressive, arithmetic; gray, colour, CMYK. Of a box only its
// columns and rows are reconstructed, and every pixel is the one that a full decode gives.
#pragma once

#include <memory>
#include <span>

#include "prep/image.h"

namespace foreload {

bool is_jpeg(std::span<const std::byte> bytes);
Result<Dimensions> jpeg_dimensions(std::span<const std::byte> bytes);
std::unique_ptr<ImageDecoder> make_jpeg_decoder();
// The same with libjpeg's own decoder of the data: what ours is compared with.
std::unique_ptr<ImageDecoder> make_plain_jpeg_decoder();

}  // namespace foreload
