// The last step of an image chain: 8-bit pixels become elements of the tensor. What an element is depends
// only on its channel and its 256 possible values, so it is looked up: exact, and the same on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "foreload/transform.h"
#include "prep/geometry.h"
#include "prep/rows.h"

namespace foreload {

// IEEE half precision, rounded to nearest, ties to even; as torch's .half().
std::uint16_t to_half(float x);

// The element of every channel and value, as torchvision computes it: u8 as it is; f32 value / 255, then
// (… - mean) / std; f16 the same, rounded at the end.
struct OutputTables {
  DType dtype = DType::kF32;
  Layout layout = Layout::kNchw;
  std::array<std::array<float, 256>, 3> f32;
  std::array<std::array<std::uint16_t, 256>, 3> f16;
  std::array<std::array<std::uint8_t, 256>, 3> u8;

  // REQUIRES: dtype is u8, f16 or f32; no normalisation for u8.
  static OutputTables make(DType dtype, Layout layout, const std::optional<MeanStd>& normalize);
};

// Writes the rows of a view to a tensor: mirrored if the view is, black where it shows nothing.
class TensorWriter final : public RowSink {
 public:
  // `out` has room for the whole view. Both it and `tables` must live until the last push().
  void prepare(const OutputTables& tables, const View& view, std::span<std::byte> out);
  void push(const std::uint8_t* row) override;

 private:
  template <typename T>
  void write(const std::array<std::array<T, 256>, 3>& tables, const std::uint8_t* row);
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
