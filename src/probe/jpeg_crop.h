// crop_jpeg: a JPEG that holds nothing but the MCUs of another one which cover a box, without loss. What decoding it
// takes is the least that any decoder of the box can take. Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "foreload/result.h"
#include "prep/geometry.h"

namespace foreload {

// REQUIRES: `box` lies inside the picture and is not empty.
Result<std::vector<std::byte>> crop_jpeg(std::span<const std::byte> jpeg, const Box& box);

}  // namespace foreload
