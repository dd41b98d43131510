// Affine maps as Pillow does them: the matrix leads from the middle of a place of the result to a place of the
// source. Nearest: 16 bits after the point, added up along the rows. Bilinear: doubles for every pixel.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "prep/angle.h"
#include "prep/stroke.h"
#include "prep/stroke_loops.h"

namespace foreload {

namespace {

constexpr int kFractionBits = 16;

// Pillow rounds to 15 decimals, so that a right angle has no rest.
double to_15_decimals(double x) {
  return std::nearbyint(x * 1e15) / 1e15;
}

void centre(Matrix& matrix, double x, double y, double from_x, double from_y) {
  matrix[2] = matrix[0] * from_x + matrix[1] * from_y;
  matrix[5] = matrix[3] * from_x + matrix[4] * from_y;
  matrix[2] += x;
  matrix[5] += y;
}

std::uint32_t filling(const Colour& fill) {
  const std::uint8_t bytes[kPixelBytes] = {fill[0], fill[1], fill[2], 0};
  std::uint32_t pixel;
  std::memcpy(&pixel, bytes, sizeof(pixel));
  return pixel;
}

std::uint32_t pixel_at(const Canvas& canvas, std::size_t x, std::size_t y) {
  std::uint32_t pixel;
  std::memcpy(&pixel, canvas.row(y) + x * kPixelBytes, sizeof(pixel));
  return pixel;
}

std::int64_t fixed(double x) {
  constexpr double kMost = 1e9;  // beyond any picture; sums along a row stay inside 64 bits

  return static_cast<std::int64_t>(std::floor(std::clamp(x, -kMost, kMost) * (1 << kFractionBits) + 0.5));
}

void warp_nearest(const Matrix& m, std::uint32_t fill, const Canvas& from, const Canvas& to) {
  std::int64_t row_x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5);
  std::int64_t row_y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  const std::int64_t step_x = fixed(m[0]);
  const std::int64_t step_y = fixed(m[3]);
  for (std::size_t y = 0; y < to.size.height; ++y) {
    std::int64_t source_x = row_x;
    std::int64_t source_y = row_y;
    std::uint8_t* out = to.row(y);
    for (std::size_t x = 0; x < to.size.width; ++x, out += kPixelBytes) {
      // What is negative becomes huge.
      const auto at_x = static_cast<std::uint64_t>(source_x >> kFractionBits);
      const auto at_y = static_cast<std::uint64_t>(source_y >> kFractionBits);
      const bool inside = at_x < from.size.width && at_y < from.size.height;
      const std::uint32_t pixel = inside ? pixel_at(from, at_x, at_y) : fill;
      std::memcpy(out, &pixel, sizeof(pixel));
      source_x += step_x;
      source_y += step_y;
    }
    row_x += fixed(m[1]);
    row_y += fixed(m[4]);
  }
}

// Without turning, Pillow adds up in doubles: which column each place shows is the same in all rows.
std::int64_t next_place(double& place, double step, std::uint32_t size) {
  const double here = place;
  place += step;
  return here >= 0.0 && here < size ? static_cast<std::int64_t>(here) : -1;
}

void scale_nearest(const Matrix& m, std::uint32_t fill, const Canvas& from, const Canvas& to) {
  double source_y = m[5] + m[4] * 0.5;
  for (std::size_t y = 0; y < to.size.height; ++y) {
    const std::int64_t at_y = next_place(source_y, m[4], from.size.height);
    double source_x = m[2] + m[0] * 0.5;
    std::uint8_t* out = to.row(y);
    for (std::size_t x = 0; x < to.size.width; ++x, out += kPixelBytes) {
      const std::int64_t at_x = next_place(source_x, m[0], from.size.width);
      const bool inside = at_x >= 0 && at_y >= 0;
      const std::uint32_t pixel =
          inside ? pixel_at(from, static_cast<std::size_t>(at_x), static_cast<std::size_t>(at_y)) : fill;
      std::memcpy(out, &pixel, sizeof(pixel));
    }
  }
}

struct Neighbours {
  std::size_t first, second;  // places, inside the picture
  double share;               // of the second one

  Neighbours(double place, std::uint32_t size) {
    const double middle = place - 0.5;
    const std::int64_t floor = middle < 0.0 ? -1 : static_cast<std::int64_t>(middle);  // place >= 0
    share = middle - static_cast<double>(floor);
    first = static_cast<std::size_t>(std::max<std::int64_t>(floor, 0));
    second = static_cast<std::size_t>(std::min<std::int64_t>(floor + 1, std::int64_t{size} - 1));
  }
};

struct Point {
  double x, y;
};

// What pixel i of a block lies between; outside of the picture, the filling on all sides.
void find_corners(const Canvas& from, Point at, std::uint32_t fill, std::size_t i, StrokeLoops::Corners& corners) {
  corners.right[i] = corners.lower[i] = 0.0;
  corners.upper_left[i] = corners.upper_right[i] = corners.lower_left[i] = corners.lower_right[i] = fill;
  if (!(at.x >= 0.0 && at.x < from.size.width && at.y >= 0.0 && at.y < from.size.height)) return;
  const Neighbours across(at.x, from.size.width);
  const Neighbours down(at.y, from.size.height);
  corners.upper_left[i] = pixel_at(from, across.first, down.first);
  corners.upper_right[i] = pixel_at(from, across.second, down.first);
  corners.lower_left[i] = pixel_at(from, across.first, down.second);
  corners.lower_right[i] = pixel_at(from, across.second, down.second);
  corners.right[i] = across.share;
  corners.lower[i] = down.share;
}

void warp_bilinear(const Matrix& m, std::uint32_t fill, const Canvas& from, const Canvas& to) {
  StrokeLoops::Corners corners;
  for (std::size_t y = 0; y < to.size.height; ++y) {
    const double middle_y = static_cast<double>(y) + 0.5;
    auto* out = reinterpret_cast<std::uint32_t*>(to.row(y));
    for (std::size_t x = 0; x < to.size.width; x += kPixelBlock) {
      const std::size_t count = std::min<std::size_t>(kPixelBlock, to.size.width - x);
      for (std::size_t i = 0; i < count; ++i) {
        const double middle_x = static_cast<double>(x + i) + 0.5;
        const Point at{m[0] * middle_x + m[1] * middle_y + m[2], m[3] * middle_x + m[4] * middle_y + m[5]};
        find_corners(from, at, fill, i, corners);
      }
      stroke_loops().bilinear(corners, count, out + x);
    }
  }
}

// Which place of the picture a place outside of it repeats; -1: none.
std::int64_t repeated(std::int64_t place, std::int64_t size, PadMode mode) {
  if (place >= 0 && place < size) return place;
  if (mode == PadMode::kConstant) return -1;
  if (mode == PadMode::kEdge || size == 1) return std::clamp<std::int64_t>(place, 0, size - 1);
  const std::int64_t period = mode == PadMode::kReflect ? 2 * size - 2 : 2 * size;
  const std::int64_t inside = ((place % period) + period) % period;
  if (inside < size) return inside;
  return period - inside - (mode == PadMode::kReflect ? 0 : 1);
}

}  // namespace

Matrix matrix_of(const Rotate& stroke, Dimensions size) {
  const SinCos angle = sin_cos(-stroke.degrees);
  const double sin = to_15_decimals(angle.sin);
  const double cos = to_15_decimals(angle.cos);
  Matrix matrix{cos, sin, 0.0, to_15_decimals(-angle.sin), cos, 0.0};
  const double x = size.width / 2.0;
  const double y = size.height / 2.0;
  centre(matrix, x, y, -x, -y);
  return matrix;
}

// Rotation by a, scaling by s, shear by (u, v), around the centre, then translation; all of it inverted. With tangents:
//   cos(a - v) / cos(v) = cos a + sin a · tan v        sin(a - v) / cos(v) = sin a - cos a · tan v
Matrix matrix_of(const Affine& stroke, Dimensions size) {
  const SinCos angle = sin_cos(stroke.degrees);
  const SinCos shear_x = sin_cos(stroke.shear[0]);
  const SinCos shear_y = sin_cos(stroke.shear[1]);
  const double tan_x = shear_x.sin / shear_x.cos;
  const double tan_y = shear_y.sin / shear_y.cos;
  const double a = angle.cos + angle.sin * tan_y;
  const double b = -a * tan_x - angle.sin;
  const double c = angle.sin - angle.cos * tan_y;
  const double d = -c * tan_x + angle.cos;
  Matrix matrix{d / stroke.scale, -b / stroke.scale, 0.0, -c / stroke.scale, a / stroke.scale, 0.0};
  const double x = size.width * 0.5;
  const double y = size.height * 0.5;
  centre(matrix, x, y, -x - static_cast<double>(stroke.translate[0]), -y - static_cast<double>(stroke.translate[1]));
  return matrix;
}

Matrix matrix_of(const Shear& stroke) {
  return {1.0, stroke.x, 0.0, stroke.y, 1.0, 0.0};
}

void warp(const Matrix& matrix, const Sampling& sampling, const Canvas& from, const Canvas& to) {
  const std::uint32_t fill = filling(sampling.fill);
  if (sampling.interpolation == Interpolation::kBilinear) return warp_bilinear(matrix, fill, from, to);
  if (matrix[1] == 0.0 && matrix[3] == 0.0) return scale_nearest(matrix, fill, from, to);
  warp_nearest(matrix, fill, from, to);
}

void add_border(const Border& stroke, const Canvas& from, const Canvas& to) {
  const std::uint32_t fill = filling(stroke.fill);
  for (std::size_t y = 0; y < to.size.height; ++y) {
    const std::int64_t at_y =
        repeated(static_cast<std::int64_t>(y) - stroke.margins.top, from.size.height, stroke.mode);
    std::uint8_t* out = to.row(y);
    for (std::size_t x = 0; x < to.size.width; ++x, out += kPixelBytes) {
      const std::int64_t at_x =
          repeated(static_cast<std::int64_t>(x) - stroke.margins.left, from.size.width, stroke.mode);
      const bool inside = at_x >= 0 && at_y >= 0;
      const std::uint32_t pixel =
          inside ? pixel_at(from, static_cast<std::size_t>(at_x), static_cast<std::size_t>(at_y)) : fill;
      std::memcpy(out, &pixel, sizeof(pixel));
    }
  }
}

}  // namespace foreload
