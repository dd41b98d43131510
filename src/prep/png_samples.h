// PNG files made for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace foreload {

struct PngSpec {
  unsigned width = 40;
  unsigned height = 30;
  int depth = 8;
  int type = 2;  // PNG's colour type: 0 gray, 2 RGB, 3 palette, 4 gray + alpha, 6 RGBA
  bool interlaced = false;
  std::uint64_t seed = 1;
};

std::vector<std::byte> make_png(const PngSpec& spec);
// Every colour type with every depth, plain and interlaced.
std::vector<PngSpec> png_kinds();

}  // namespace foreload
