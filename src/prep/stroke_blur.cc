// Gaussian blur in two passes, as torchvision's to within a rounding: weights exp(-d² / 2σ²), the picture mirrored at
// its borders without repeating the outermost pixels, sums in float. In place: a ring keeps the rows of the first pass
// that are needed.
//
//   row y+r ─► widened, mirrored ends ─► along x ─► ring[(y+r) mod height] ─► along y ─► row y
#include <algorithm>
#include <cstring>
#include <span>

#include "base/check.h"
#include "prep/fixed_point.h"
#include "prep/stroke.h"
#include "prep/stroke_loops.h"

namespace foreload {

namespace {

// Numbers of a row between the passes, filled up so that loops need no rest.
std::size_t wide_count(std::size_t pixels) {
  return (pixels * kPixelBytes + kSumBlock - 1) / kSumBlock * kSumBlock;
}

// 2^32 · exp(-distance² / (2 sigma²)), from integers.
std::uint64_t bell(std::uint64_t distance, std::uint64_t sigma_q32) {
  constexpr std::uint64_t kHalfLog2E = 3326628274461080623ull;  // log2(e) / 2, 62 bits after the point
  const Uint128 variance_q64 = Uint128{sigma_q32} * sigma_q32;
  const Uint128 exponent_q32 = (Uint128{distance * distance} * kHalfLog2E << 34) / variance_q64;
  if (exponent_q32 >= Uint128{31} << 32) return 0;
  return exp2_q32(-static_cast<std::int64_t>(exponent_q32));
}

void make_weights(double sigma, std::span<float> weights) {
  const std::size_t middle = weights.size() / 2;
  const std::uint64_t sigma_q32 = to_q32(sigma);
  std::uint64_t sum = bell(0, sigma_q32);
  for (std::size_t i = 1; i <= middle; ++i) sum += 2 * bell(i, sigma_q32);
  for (std::size_t i = 0; i <= middle; ++i) {
    const double share = static_cast<double>(bell(middle - i, sigma_q32)) / static_cast<double>(sum);
    weights[i] = weights[weights.size() - 1 - i] = static_cast<float>(share);
  }
}

// Without repeating the outermost place.
std::size_t mirrored(std::int64_t place, std::int64_t size) {
  if (place < 0) place = -place;
  if (place >= size) place = 2 * size - 2 - place;
  return static_cast<std::size_t>(place);
}

// What a blur takes from scratch, in this order.
struct Counts {
  Counts(const Blur& stroke, Dimensions size)
      : taps(std::max(stroke.width, stroke.height)),
        widened(wide_count(std::size_t{size.width} + stroke.width) + kSumBlock),
        ring(wide_count(size.width) * stroke.height) {}

  std::size_t taps, widened, ring;
};

class Passes {
 public:
  Passes(const Blur& stroke, const Canvas& canvas, Scratch& scratch) : canvas_(canvas) {
    const Counts counts(stroke, canvas.size);
    weights_x_ = scratch.take<float>(stroke.width);
    weights_y_ = scratch.take<float>(stroke.height);
    taps_ = scratch.take<const float*>(counts.taps);
    widened_ = scratch.take<float>(counts.widened);
    ring_ = scratch.take<float>(counts.ring);
    row_ = scratch.take<std::uint8_t>(wide_count(canvas.size.width));
    make_weights(stroke.sigma, weights_x_);
    make_weights(stroke.sigma, weights_y_);
    std::fill(widened_.begin(), widened_.end(), 0.0f);
  }

  void along_x(std::size_t y) {
    const auto radius = static_cast<std::int64_t>(weights_x_.size() / 2);
    const std::int64_t width = canvas_.size.width;
    const std::uint8_t* row = canvas_.row(y);
    float* inner = widened_.data() + radius * static_cast<std::int64_t>(kPixelBytes);
    for (std::size_t i = 0; i < canvas_.size.width * kPixelBytes; ++i) inner[i] = static_cast<float>(row[i]);
    for (std::int64_t i = 0; i < radius; ++i) {
      copy_pixel(row + mirrored(i - radius, width) * kPixelBytes, static_cast<std::size_t>(i));
      copy_pixel(row + mirrored(width + i, width) * kPixelBytes, static_cast<std::size_t>(radius + width + i));
    }
    for (std::size_t i = 0; i < weights_x_.size(); ++i) taps_[i] = widened_.data() + i * kPixelBytes;
    stroke_loops().add_up({taps_.data(), weights_x_.data(), weights_x_.size()}, wide_count(canvas_.size.width),
                          ring_row(y));
  }

  void along_y(std::size_t y) {
    const auto radius = static_cast<std::int64_t>(weights_y_.size() / 2);
    for (std::size_t i = 0; i < weights_y_.size(); ++i) {
      taps_[i] = ring_row(mirrored(static_cast<std::int64_t>(y + i) - radius, canvas_.size.height));
    }
    stroke_loops().add_up_bytes({taps_.data(), weights_y_.data(), weights_y_.size()}, row_.size(), row_.data());
    std::memcpy(canvas_.row(y), row_.data(), canvas_.stride());
  }

 private:
  float* ring_row(std::size_t y) { return ring_.data() + y % weights_y_.size() * wide_count(canvas_.size.width); }

  void copy_pixel(const std::uint8_t* pixel, std::size_t to) {
    for (std::size_t i = 0; i < kPixelBytes; ++i) widened_[to * kPixelBytes + i] = static_cast<float>(pixel[i]);
  }

  const Canvas& canvas_;
  std::span<float> weights_x_, weights_y_;
  std::span<const float*> taps_;
  std::span<float> widened_;
  std::span<float> ring_;
  std::span<std::uint8_t> row_;
};

}  // namespace

Bytes blur_bytes(const Blur& stroke, Dimensions size) {
  const Counts counts(stroke, size);
  return Scratch::padded(stroke.width * sizeof(float)) + Scratch::padded(stroke.height * sizeof(float)) +
         Scratch::padded(counts.taps * sizeof(float*)) + Scratch::padded(counts.widened * sizeof(float)) +
         Scratch::padded(counts.ring * sizeof(float)) + Scratch::padded(wide_count(size.width));
}

void blur(const Blur& stroke, const Canvas& canvas, Scratch& scratch) {
  FORELOAD_CHECK(stroke.width / 2 < canvas.size.width && stroke.height / 2 < canvas.size.height,
                 "the op refuses pictures that are smaller than half of the kernel");
  Passes passes(stroke, canvas, scratch);
  const std::size_t radius = stroke.height / 2;
  const std::size_t height = canvas.size.height;
  for (std::size_t y = 0; y < std::min(radius, height); ++y) passes.along_x(y);
  for (std::size_t y = 0; y < height; ++y) {
    if (y + radius < height) passes.along_x(y + radius);
    passes.along_y(y);
  }
}

}  // namespace foreload
