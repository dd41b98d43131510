// PeerCrop: the part of a picture that is enough, as another host is asked for it. Nobody trusts the numbers of others:
// is_sound() is asked first. A plain value.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "foreload/source.h"

namespace foreload {

struct PeerCrop {
  std::uint16_t picture_width = 0;  // of the whole picture, as the index has it
  std::uint16_t picture_height = 0;
  std::uint16_t x = 0;
  std::uint16_t y = 0;
  std::uint16_t width = 0;  // 0: all of the sample is wanted, whatever it is
  std::uint16_t height = 0;

  bool operator==(const PeerCrop&) const = default;
  bool is_wanted() const { return width != 0; }
  Dimensions picture() const { return {picture_width, picture_height}; }
  // A box in the picture, or nothing at all.
  bool is_sound() const {
    if (*this == PeerCrop{}) return true;
    return width > 0 && height > 0 && x + width <= picture_width && y + height <= picture_height;
  }
  // Whether a picture can be asked for so.
  static bool fits(Dimensions picture) {
    constexpr std::uint32_t kLargest = std::numeric_limits<std::uint16_t>::max();
    return picture.width <= kLargest && picture.height <= kLargest;
  }
};

}  // namespace foreload
