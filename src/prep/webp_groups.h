// count_webp_groups: how many groups of prefix codes the lossless part of a WebP file has. It decides what libwebp
// allocates, and stands behind the compressed tile images of the transforms; so these are read, but no pixels. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "foreload/source.h"

namespace foreload {

// An upper bound, which libwebp's own count reaches unless groups are unused. 0: nothing is coded without loss.
// Nothing: the data ends early or breaks the format before that; libwebp then stops there, too.
std::optional<std::uint64_t> count_webp_groups(std::span<const std::byte> file, Dimensions size);

}  // namespace foreload
