// Stroke: one change of a picture's pixels, with this sample's random parameters already drawn. Ops describe what
// they do as strokes; paint() does it. All of it is integer arithmetic or plain IEEE operations in a fixed order,
// so pixels are the same on every machine. The meaning is that of torchvision on Pillow images.
#pragma once

#include <array>
#include <cstdint>
#include <variant>

#include "foreload/source.h"
#include "prep/canvas.h"
#include "prep/scratch.h"

namespace foreload {

using Colour = std::array<std::uint8_t, 3>;

enum class Interpolation { kNearest, kBilinear };

// How a warped picture is read, and what stands where it shows nothing.
struct Sampling {
  Interpolation interpolation = Interpolation::kNearest;
  Colour fill{};
};

// Pillow's ImageEnhance: from the degenerate picture (factor 0) through the picture itself (1) to beyond.
struct Enhance {
  enum class Kind { kBrightness, kContrast, kSaturation, kSharpness };
  Kind kind;
  double factor;
};
struct ShiftHue {
  double turn;  // -0.5 … 0.5
};
struct MakeGray {};
struct Posterize {
  std::uint32_t bits;  // 1 … 8, of each channel
};
struct Solarize {
  double threshold;
};
struct AutoContrast {};
struct Equalize {};
struct Blur {
  std::uint32_t width, height;  // of the kernel: odd, and half of it smaller than the picture
  double sigma;
};
struct Rotate {
  double degrees;  // counter-clockwise, around the centre
  Sampling sampling;
};
// torchvision's functional.affine: clockwise degrees, pixels, degrees of shear.
struct Affine {
  double degrees;
  std::array<std::int64_t, 2> translate;
  double scale;
  std::array<double, 2> shear;
  Sampling sampling;
};
// Rows (columns) slide by `x` (`y`) pixels per pixel from the upper left corner.
struct Shear {
  double x, y;
  Sampling sampling;
};
struct Margins {
  std::int64_t left = 0, top = 0, right = 0, bottom = 0;
};
enum class PadMode { kConstant, kEdge, kReflect, kSymmetric };
struct Border {
  Margins margins;
  PadMode mode;
  Colour fill;
};

using Stroke = std::variant<Enhance, ShiftHue, MakeGray, Posterize, Solarize, AutoContrast, Equalize, Blur, Rotate,
                            Affine, Shear, Border>;

Dimensions size_after(const Stroke& stroke, Dimensions size);
bool works_in_place(const Stroke& stroke);
// What paint() takes from scratch.
Bytes stroke_bytes(const Stroke& stroke, Dimensions size);
// REQUIRES: `to` has size_after(); it is `from` if the stroke works in place, and other memory if not.
void paint(const Stroke& stroke, const Canvas& from, const Canvas& to, Scratch& scratch);

// The four files behind paint().
void enhance(const Enhance& stroke, const Canvas& canvas, Scratch& scratch);
void shift_hue(const ShiftHue& stroke, const Canvas& canvas);
void make_gray(const Canvas& canvas);
void posterize(const Posterize& stroke, const Canvas& canvas);
void solarize(const Solarize& stroke, const Canvas& canvas);
void auto_contrast(const Canvas& canvas);
void equalize(const Canvas& canvas);
Bytes blur_bytes(const Blur& stroke, Dimensions size);
void blur(const Blur& stroke, const Canvas& canvas, Scratch& scratch);

// Where a place of the result lies in the source: x' = m[0]·x + m[1]·y + m[2], y' = m[3]·x + m[4]·y + m[5].
using Matrix = std::array<double, 6>;
Matrix matrix_of(const Rotate& stroke, Dimensions size);
Matrix matrix_of(const Affine& stroke, Dimensions size);
Matrix matrix_of(const Shear& stroke);
void warp(const Matrix& matrix, const Sampling& sampling, const Canvas& from, const Canvas& to);
void add_border(const Border& stroke, const Canvas& from, const Canvas& to);

}  // namespace foreload
