// What the tests of prep share: decoding a box into memory, and the amount of a random test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "prep/image.h"
#include "prep/rows.h"

namespace foreload {

// A tenth of the amount, or all of it with FORELOAD_SOAK=1.
inline unsigned test_amount(unsigned all) {
  const char* soak = std::getenv("FORELOAD_SOAK");
  return soak && std::string_view(soak) == "1" ? all : all / 10;
}

struct Picture {
  Dimensions size;
  std::vector<std::uint8_t> rgb;

  std::uint8_t at(std::int64_t x, std::int64_t y, unsigned channel) const {
    return rgb[(static_cast<std::size_t>(y) * size.width + static_cast<std::size_t>(x)) * 3 + channel];
  }
};

// The pixels of a box; of the whole picture when it is empty.
inline Result<Picture> decode_picture(ImageDecoder& decoder, std::span<const std::byte> bytes, Box box = {}) {
  FORELOAD_ASSIGN(const Dimensions size, decoder.open(bytes, Limits{}));
  if (box.width == 0) box = {0, 0, size.width, size.height};
  std::vector<std::uint8_t> scratch(decoder.memory(box).scratch);
  FORELOAD_TRY(decoder.start(box, scratch));
  Picture picture{{box.width, box.height}, {}};
  for (std::uint32_t y = 0; y < box.height; ++y) {
    FORELOAD_ASSIGN(const std::uint8_t* row, decoder.next_row());
    for (std::uint32_t x = 0; x < box.width; ++x) {
      picture.rgb.insert(picture.rgb.end(), row + x * kPixelBytes, row + x * kPixelBytes + 3);
    }
  }
  return picture;
}

inline Picture cut_out(const Picture& from, const Box& box) {
  Picture picture{{box.width, box.height}, {}};
  for (std::uint32_t y = 0; y < box.height; ++y) {
    const auto first = from.rgb.begin() + (std::ptrdiff_t{box.y + y} * from.size.width + box.x) * 3;
    picture.rgb.insert(picture.rgb.end(), first, first + std::ptrdiff_t{box.width} * 3);
  }
  return picture;
}

}  // namespace foreload
