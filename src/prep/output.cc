#include "prep/output.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace foreload {

namespace {

constexpr std::size_t kChannels = 3;

template <typename T>
using Tables = std::array<std::array<T, 256>, kChannels>;

struct Pixels {
  const std::uint8_t* first;
  std::ptrdiff_t step;  // bytes from one pixel to the next: negative when mirrored
  std::size_t count;
};

template <typename T>
void write_planes(const Tables<T>& tables, const Pixels& pixels, T* red, std::size_t plane) {
  T* green = red + plane;
  T* blue = green + plane;
  const std::uint8_t* pixel = pixels.first;
  for (std::size_t i = 0; i < pixels.count; ++i, pixel += pixels.step) {
    red[i] = tables[0][pixel[0]];
    green[i] = tables[1][pixel[1]];
    blue[i] = tables[2][pixel[2]];
  }
}

template <typename T>
void write_pixels(const Tables<T>& tables, const Pixels& pixels, T* out) {
  const std::uint8_t* pixel = pixels.first;
  for (std::size_t i = 0; i < pixels.count; ++i, pixel += pixels.step, out += kChannels) {
    out[0] = tables[0][pixel[0]];
    out[1] = tables[1][pixel[1]];
    out[2] = tables[2][pixel[2]];
  }
}

}  // namespace

// The float's 23 bits of fraction are cut to 10 with rounding; below 2^-14 the half is denormal and loses
// one more bit per power of two.
std::uint16_t to_half(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000;
  const std::uint32_t size = bits & 0x7fffffff;
  if (size >= 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7c00 | (size > 0x7f800000 ? 0x200 : 0));
  if (size >= 0x477ff000) return static_cast<std::uint16_t>(sign | 0x7c00);  // rounds to 65536: infinity
  const std::uint32_t exponent = size >> 23;
  if (exponent < 102) return static_cast<std::uint16_t>(sign);  // below half of the smallest
  const bool denormal = exponent < 113;
  const std::uint32_t fraction = denormal ? (size & 0x7fffff) | 0x800000 : size - (112u << 23);
  const std::uint32_t dropped = denormal ? 126 - exponent : 13;
  const std::uint32_t whole = fraction >> dropped;
  const std::uint32_t rest = fraction & ((1u << dropped) - 1);
  const std::uint32_t half = 1u << (dropped - 1);
  const bool up = rest > half || (rest == half && (whole & 1));
  return static_cast<std::uint16_t>(sign | (whole + (up ? 1 : 0)));
}

OutputTables OutputTables::make(DType dtype, Layout layout, const std::optional<MeanStd>& normalize) {
  FORELOAD_CHECK(dtype == DType::kU8 || dtype == DType::kF16 || dtype == DType::kF32, "the chain checked the dtype");
  OutputTables tables{dtype, layout, {}, {}, {}};
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    for (std::size_t value = 0; value < 256; ++value) {
      float element = static_cast<float>(value) / 255.0f;
      if (normalize) {
        element = element - static_cast<float>(normalize->mean[channel]);
        element = element / static_cast<float>(normalize->std[channel]);
      }
      tables.f32[channel][value] = element;
      tables.f16[channel][value] = to_half(element);
      tables.u8[channel][value] = static_cast<std::uint8_t>(value);
    }
  }
  return tables;
}

void TensorWriter::prepare(const OutputTables& tables, const View& view, std::span<std::byte> out) {
  const Interval x = view.x.visible({0, view.x.size});
  const Interval y = view.y.visible({0, view.y.size});
  tables_ = &tables;
  out_ = out.data();
  mirrored_ = view.x.mirrored;
  width_ = static_cast<std::size_t>(view.x.size);
  height_ = static_cast<std::size_t>(view.y.size);
  left_ = static_cast<std::size_t>(x.first);
  count_ = static_cast<std::size_t>(x.size());
  row_ = static_cast<std::size_t>(y.first);
  FORELOAD_CHECK(out.size() == width_ * height_ * kChannels * dtype_size(tables.dtype), "out has output().bytes()");
  if (x.size() == view.x.size && y.size() == view.y.size) return;
  if (tables.dtype == DType::kF32) fill_black(tables.f32);
  if (tables.dtype == DType::kF16) fill_black(tables.f16);
  if (tables.dtype == DType::kU8) fill_black(tables.u8);
}

void TensorWriter::push(const std::uint8_t* row) {
  if (tables_->dtype == DType::kF32) write(tables_->f32, row);
  if (tables_->dtype == DType::kF16) write(tables_->f16, row);
  if (tables_->dtype == DType::kU8) write(tables_->u8, row);
  ++row_;
}

template <typename T>
void TensorWriter::write(const Tables<T>& tables, const std::uint8_t* row) {
  constexpr auto kStep = static_cast<std::ptrdiff_t>(kPixelBytes);
  const Pixels pixels{mirrored_ ? row + (count_ - 1) * kPixelBytes : row, mirrored_ ? -kStep : kStep, count_};
  T* out = reinterpret_cast<T*>(out_);
  const std::size_t first = row_ * width_ + left_;
  if (tables_->layout == Layout::kNchw) {
    write_planes(tables, pixels, out + first, width_ * height_);
  } else {
    write_pixels(tables, pixels, out + first * kChannels);
  }
}

template <typename T>
void TensorWriter::fill_black(const Tables<T>& tables) {
  T* out = reinterpret_cast<T*>(out_);
  const std::size_t plane = width_ * height_;
  for (std::size_t i = 0; i < plane * kChannels; ++i) {
    const std::size_t channel = tables_->layout == Layout::kNchw ? i / plane : i % kChannels;
    out[i] = tables[channel][0];
  }
}

}  // namespace foreload
