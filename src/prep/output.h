// The last step of an image chain: 8-bit pixels become elements of the tensor. What an element is depends
// only on its channel and its 256 possible values, so tables say it: exact, and the same on every machine.
// Kernels may compute an element instead of looking it up, but only after they gave all 768 as the tables say.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "foreload/transform.h"
#include "prep/geometry.h"
#include "prep/half.h"
#include "prep/rows.h"

namespace foreload {

struct PixelKernels;

// 1 / d as the sum of two floats: x · high + x · low, with the product and the sum rounded once, is x / d, nearly
// always.
struct Reciprocal {
  float high = 1;
  float low = 0;

  static Reciprocal of(float d);
};

// The element of every channel and value, as torchvision computes it: u8 as it is; f32 value / 255, then
// (… - mean) / std; f16 the same, rounded at the end.
struct OutputTables {
  DType dtype = DType::kF32;
  Layout layout = Layout::kNchw;
  std::array<std::array<float, 256>, 3> f32;
  std::array<std::array<std::uint16_t, 256>, 3> f16;
  std::array<std::array<std::uint8_t, 256>, 3> u8;

  // The same as arithmetic, for kernels that compute.
  std::array<float, 3> mean;
  std::array<float, 3> std;
  Reciprocal by_255;
  std::array<Reciprocal, 3> by_std;
  // The kernels that were found to give what the tables say; the plain ones when the best do not.
  const PixelKernels* kernels = nullptr;

  // REQUIRES: dtype is u8, f16 or f32; no normalisation for u8.
  static OutputTables make(DType dtype, Layout layout, const std::optional<MeanStd>& normalize);
};

// Where a row of the tensor stands.
struct TensorRow {
  const OutputTables& tables;
  std::byte* out;     // its first visible element: of the first plane, or of the first pixel
  std::size_t plane;  // elements from one plane to the next
};

// Writes the rows of a view to a tensor: mirrored if the view is, black where it shows nothing.
class TensorWriter final : public RowSink {
 public:
  // `out` has room for the whole view. Both it and `tables` must live until the last row.
  void prepare(const OutputTables& tables, const View& view, std::span<std::byte> out);
  void push(const std::uint8_t* row) override;
  TensorWriter* tensor() override { return this; }

  // For a stage that writes to the tensor itself instead of pushing rows, with kernels() and in mirrored() order.
  const PixelKernels& kernels() const { return *tables_->kernels; }
  bool mirrored() const { return mirrored_; }
  TensorRow next_row();

 private:
  template <typename T>
  void fill_black(const std::array<std::array<T, 256>, 3>& tables);

  const OutputTables* tables_ = nullptr;
  std::byte* out_ = nullptr;
  bool mirrored_ = false;
  std::size_t width_ = 0;  // of the tensor
  std::size_t height_ = 0;
  std::size_t left_ = 0;   // where the visible part begins
  std::size_t count_ = 0;  // its pixels per row
  std::size_t row_ = 0;    // the next one to be written
};

}  // namespace foreload
