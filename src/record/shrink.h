// shrink_image: an image made smaller, antialiased, and encoded as JPEG again. With loss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "foreload/loader.h"
#include "foreload/result.h"
#include "foreload/source.h"

namespace foreload {

// `size` with its longer side at most `max_side`, the shorter one rounded and at least 1.
Dimensions shrunk_size(Dimensions size, std::uint32_t max_side);

struct Shrinking {
  Dimensions to;
  std::uint32_t quality = 90;
  Limits limits{};
};
// Gray stays gray, colour is stored as 4:2:0. `take` is asked once, with all the memory that is needed; its error is
// returned. kBadSample: it can not be decoded.
Result<std::vector<std::byte>> shrink_image(std::span<const std::byte> image, const Shrinking& how,
                                            const std::function<Status(Bytes)>& take);

}  // namespace foreload
