// The inner loops of strokes, compiled once per instruction set (stroke_loops.cc). The source is one and the same, in
// plain operations without contraction, so every instruction set gives the same pixels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace foreload {

inline constexpr std::size_t kPixelBlock = 256;
inline constexpr std::size_t kSumBlock = 64;

// Rows are whole pixels, as 32-bit numbers with red in the lowest byte.
struct StrokeLoops {
  // Every byte becomes level + factor · (byte - level), cut to 0 … 255 and rounded down.
  void (*blend)(std::uint8_t* row, std::size_t bytes, float level, float factor);
  // The same with each pixel's gray as level.
  void (*saturate)(std::uint32_t* pixels, std::size_t count, float factor);
  // The same with the row's smoothed self as level: weights of 1 around a 5, over 13. The outermost pixels stay.
  struct Smooth {
    const std::uint8_t* above;
    const std::uint8_t* here;
    const std::uint8_t* below;
    float factor;
  };
  void (*sharpen)(const Smooth& rows, std::uint8_t* out, std::size_t bytes);
  void (*gray)(std::uint32_t* pixels, std::size_t count);
  // REQUIRES: count < 2^24.
  std::uint32_t (*gray_sum)(const std::uint32_t* pixels, std::size_t count);
  // Turns the hue by shift/255 of the circle, in Pillow's 8-bit HSV. REQUIRES: count <= kPixelBlock.
  void (*shift_hue)(std::uint32_t* pixels, std::size_t count, int shift);
  // out = Σ weights[i] · rows[i]. Weights are symmetric, taps is odd, count is a multiple of kSumBlock.
  struct Sum {
    const float* const* rows;
    const float* weights;
    std::size_t taps;
  };
  void (*add_up)(const Sum& sum, std::size_t count, float* out);
  // The same, rounded to bytes.
  void (*add_up_bytes)(const Sum& sum, std::size_t count, std::uint8_t* out);
  // Pixels between four others, in doubles as Pillow has it. REQUIRES: count <= kPixelBlock.
  struct Corners {
    std::uint32_t upper_left[kPixelBlock], upper_right[kPixelBlock];
    std::uint32_t lower_left[kPixelBlock], lower_right[kPixelBlock];
    double right[kPixelBlock];  // share of the right ones
    double lower[kPixelBlock];
  };
  void (*bilinear)(const Corners& corners, std::size_t count, std::uint32_t* out);
};

// The best for this machine.
const StrokeLoops& stroke_loops();

}  // namespace foreload
