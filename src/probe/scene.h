// Scene: a made-up photograph before compression. Overlapping shapes of plain colour ("dead leaves", which
// have the edges and the 1/f spectrum of real scenes) carry a noise of all wavelengths; how strong the
// noise is decides how many bytes a JPEG of the scene takes. A pure function of (seed, width, height).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "prep/jpeg_encode.h"

namespace foreload {

// Fixed-point strength of the noise: kUnitDetail is a busy photograph.
inline constexpr int kUnitDetail = 256;

class Scene {
 public:
  // REQUIRES: width, height ≥ 1.
  Scene(std::uint64_t seed, unsigned width, unsigned height);

  unsigned width() const { return width_; }
  unsigned height() const { return height_; }
  // Writes row `y` in the channels of `colour`. REQUIRES: out.size() = width × channels(colour).
  void render_row(unsigned y, int detail, JpegColour colour, std::span<std::uint8_t> out) const;

 private:
  struct Plane {
    std::vector<std::uint8_t> base;     // without detail
    std::vector<std::int16_t> texture;  // what detail scales
  };
  void paint(std::uint64_t seed);
  std::array<std::uint8_t, 3> pixel(std::size_t at, int detail) const;

  unsigned width_;
  unsigned height_;
  std::array<Plane, 3> planes_;  // Y, Cb, Cr
};

}  // namespace foreload
