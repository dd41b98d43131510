// WebP through libwebp's advanced interface: lossy and lossless, alpha dropped as Pillow's convert('RGB') does. Only
// the box and what its edges need is decoded. Animations are refused: a sample is one picture.
#pragma once

#include <memory>
#include <span>

#include "prep/image.h"

namespace foreload {

bool is_webp(std::span<const std::byte> bytes);
Result<Dimensions> webp_dimensions(std::span<const std::byte> bytes);
std::unique_ptr<ImageDecoder> make_webp_decoder();

}  // namespace foreload
