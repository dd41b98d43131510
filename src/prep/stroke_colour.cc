// Colours as Pillow computes them, value for value: row by row through the loops of stroke_loops.cc.
#include <algorithm>
#include <cstring>

#include "prep/stroke.h"
#include "prep/stroke_loops.h"

namespace foreload {

namespace {

// Calls work(pixels, count) for parts of rows.
template <typename Work>
void for_blocks(const Canvas& canvas, Work work) {
  for (std::size_t y = 0; y < canvas.size.height; ++y) {
    auto* row = reinterpret_cast<std::uint32_t*>(canvas.row(y));
    for (std::size_t x = 0; x < canvas.size.width; x += kPixelBlock) {
      work(row + x, std::min<std::size_t>(kPixelBlock, canvas.size.width - x));
    }
  }
}

void blend_with_level(const Canvas& canvas, float level, float factor) {
  for (std::size_t y = 0; y < canvas.size.height; ++y) {
    stroke_loops().blend(canvas.row(y), canvas.size.width * kPixelBytes, level, factor);
  }
}

// Pillow: int(mean + 0.5), the mean as a double.
float mean_level(const Canvas& canvas) {
  std::uint64_t sum = 0;
  for_blocks(canvas, [&](std::uint32_t* pixels, std::size_t count) { sum += stroke_loops().gray_sum(pixels, count); });
  const auto count = static_cast<double>(std::uint64_t{canvas.size.width} * canvas.size.height);
  return static_cast<float>(static_cast<std::int32_t>(static_cast<double>(sum) / count + 0.5));
}

void sharpen(const Canvas& canvas, float factor, Scratch& scratch) {
  const std::size_t bytes = canvas.size.width * kPixelBytes;
  std::uint8_t* above = scratch.take<std::uint8_t>(canvas.stride()).data();
  std::uint8_t* here = scratch.take<std::uint8_t>(canvas.stride()).data();
  if (canvas.size.height < 3 || canvas.size.width < 3) return;
  std::memcpy(above, canvas.row(0), bytes);
  for (std::size_t y = 1; y + 1 < canvas.size.height; ++y) {
    std::memcpy(here, canvas.row(y), bytes);
    stroke_loops().sharpen({above, here, canvas.row(y + 1), factor}, canvas.row(y), bytes);
    std::swap(above, here);
  }
}

}  // namespace

void enhance(const Enhance& stroke, const Canvas& canvas, Scratch& scratch) {
  const auto factor = static_cast<float>(stroke.factor);
  switch (stroke.kind) {
    case Enhance::Kind::kBrightness:
      return blend_with_level(canvas, 0.0f, factor);
    case Enhance::Kind::kContrast:
      return blend_with_level(canvas, mean_level(canvas), factor);
    case Enhance::Kind::kSaturation:
      return for_blocks(canvas, [factor](std::uint32_t* pixels, std::size_t count) {
        stroke_loops().saturate(pixels, count, factor);
      });
    case Enhance::Kind::kSharpness:
      return sharpen(canvas, factor, scratch);
  }
}

void make_gray(const Canvas& canvas) {
  for_blocks(canvas, [](std::uint32_t* pixels, std::size_t count) { stroke_loops().gray(pixels, count); });
}

void shift_hue(const ShiftHue& stroke, const Canvas& canvas) {
  const int shift = static_cast<int>(stroke.turn * 255.0) & 255;
  for_blocks(canvas,
             [shift](std::uint32_t* pixels, std::size_t count) { stroke_loops().shift_hue(pixels, count, shift); });
}

}  // namespace foreload
