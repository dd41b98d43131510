#include "prep/output.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "prep/resize_kernels.h"

namespace foreload {

namespace {

constexpr std::size_t kChannels = 3;

template <typename T>
using Tables = std::array<std::array<T, 256>, kChannels>;

// Lets the best kernels write every value of every channel and compares with the tables.
template <typename T>
const PixelKernels& proven_kernels(const OutputTables& tables, const Tables<T>& expected) {
  std::array<std::uint8_t, 256 * kPixelBytes> pixels;
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i / kPixelBytes);
  OutputTables planar = tables;
  planar.layout = Layout::kNchw;
  Tables<T> written;
  const PixelKernels& best = pixel_kernels();
  best.write({pixels.data(), 256, false}, {planar, reinterpret_cast<std::byte*>(&written), 256});
  return std::memcmp(&written, &expected, sizeof written) == 0 ? best : plain_kernels();
}

const PixelKernels& proven_kernels(const OutputTables& tables) {
  if (tables.dtype == DType::kF32) return proven_kernels(tables, tables.f32);
  if (tables.dtype == DType::kF16) return proven_kernels(tables, tables.f16);
  return proven_kernels(tables, tables.u8);
}

}  // namespace

Reciprocal Reciprocal::of(float d) {
  const double exact = 1.0 / static_cast<double>(d);
  const auto high = static_cast<float>(exact);
  return {high, static_cast<float>(exact - static_cast<double>(high))};
}

OutputTables OutputTables::make(DType dtype, Layout layout, const std::optional<MeanStd>& normalize) {
  FORELOAD_CHECK(dtype == DType::kU8 || dtype == DType::kF16 || dtype == DType::kF32, "the chain checked the dtype");
  OutputTables tables{.dtype = dtype, .layout = layout, .by_255 = Reciprocal::of(255.0f)};
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    const float mean = normalize ? static_cast<float>(normalize->mean[channel]) : 0.0f;
    const float std = normalize ? static_cast<float>(normalize->std[channel]) : 1.0f;
    tables.mean[channel] = mean;
    tables.std[channel] = std;
    tables.by_std[channel] = Reciprocal::of(std);
    for (std::size_t value = 0; value < 256; ++value) {
      const float element = (static_cast<float>(value) / 255.0f - mean) / std;
      tables.f32[channel][value] = element;
      tables.f16[channel][value] = to_half(element);
      tables.u8[channel][value] = static_cast<std::uint8_t>(value);
    }
  }
  tables.kernels = &proven_kernels(tables);
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

TensorRow TensorWriter::next_row() {
  const std::size_t first = row_++ * width_ + left_;
  const std::size_t element = tables_->layout == Layout::kNchw ? first : first * kChannels;
  return {*tables_, out_ + element * dtype_size(tables_->dtype), width_ * height_};
}

void TensorWriter::push(const std::uint8_t* row) {
  tables_->kernels->write({row, count_, mirrored_}, next_row());
}

template <typename T>
void TensorWriter::fill_black(const Tables<T>& tables) {
  T* out = reinterpret_cast<T*>(out_);
  const std::size_t plane = width_ * height_;
  if (tables_->layout == Layout::kNchw) {
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      std::fill_n(out + channel * plane, plane, tables[channel][0]);
    }
    return;
  }
  for (std::size_t i = 0; i < plane; ++i) {
    for (std::size_t channel = 0; channel < kChannels; ++channel) out[i * kChannels + channel] = tables[channel][0];
  }
}

}  // namespace foreload
