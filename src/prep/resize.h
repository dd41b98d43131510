// Antialiased bilinear resize, equal to Pillow's bit for bit: a triangle filter that widens when shrinking,
// weights with 22 bits after the point, first along x, then along y, with 8-bit pixels in between.
// Rows are streamed: a row goes in, finished rows come out, and only as many rows as the filter is high
// are kept. Pixels are four bytes wide (R, G, B and one that is ignored).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "prep/geometry.h"
#include "prep/rows.h"
#include "prep/scratch.h"

namespace foreload {

// Which input places an output place is made of.
struct Taps {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// REQUIRES: from > 0, place < to.
Taps taps_of(std::uint32_t from, std::uint32_t to, std::uint32_t place);

// One axis of a ResizeStep.
struct AxisWindow {
  std::uint32_t from = 0;  // whole input size
  std::uint32_t to = 0;    // whole output size
  Interval in;
  Interval out;

  bool is_identity() const { return from == to; }
};

// Weights along y, for each output row of a window. `first` counts from the beginning of the input window.
struct ColumnWeights {
  std::span<const Taps> taps;
  std::span<const std::int32_t> weights;  // `stride` per output row, 22 bits each
  std::size_t stride = 0;

  static Bytes bytes(const AxisWindow& axis);
  // Takes bytes(axis) from `scratch`.
  static ColumnWeights make(const AxisWindow& axis, Scratch& scratch);
};

// Weights along x, laid out for kernels that make four places at once with 16-bit multiplications. Every
// place has groups · 4 taps, of which the last may be zero; the number of places is filled up to a multiple
// of four. A place's group is eight numbers: the low 15 bits of its four weights, then the high ones.
//
//   for places 4q … 4q+3:   groups × [place 4q, place 4q+2], groups × [place 4q+1, place 4q+3]
struct RowWeights {
  static constexpr int kLowBits = 15;
  static constexpr std::uint32_t kGroup = 4;

  std::span<const std::uint32_t> first;  // tap of each place, counted as above
  std::span<const std::int16_t> numbers;
  std::uint32_t groups = 0;

  // Where the low bits of a weight stand; its high bits stand kGroup further on.
  std::size_t index(std::size_t place, std::size_t tap) const;

  static Bytes bytes(const AxisWindow& axis);
  static RowWeights make(const AxisWindow& axis, Scratch& scratch);
};

// Resizes the rows of a ResizeStep's input window and pushes those of its output window.
class ResizeStage final : public RowSink {
 public:
  static Bytes bytes(const ResizeStep& step);

  // Takes bytes(step) from `scratch`. `next` receives the rows.
  void prepare(const ResizeStep& step, Scratch& scratch, RowSink& next);
  void push(const std::uint8_t* row) override;

 private:
  void emit(std::uint32_t place);

  RowSink* next_ = nullptr;
  RowWeights x_;
  ColumnWeights y_;
  bool x_is_identity_ = false;
  bool y_is_identity_ = false;
  std::uint32_t out_width_ = 0;
  std::uint32_t out_height_ = 0;
  std::size_t row_bytes_ = 0;
  std::uint32_t ring_rows_ = 1;
  std::uint8_t* ring_ = nullptr;
  std::uint8_t* out_row_ = nullptr;
  std::uint32_t rows_in_ = 0;
  std::uint32_t rows_out_ = 0;
};

}  // namespace foreload
