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

// One axis of a ResizeStep.
struct AxisWindow {
  std::uint32_t from = 0;  // whole input size
  std::uint32_t to = 0;    // whole output size
  Interval in;
  Interval out;

  Eighths part{};  // of the input, when it is not all of it

  bool is_identity() const { return from == to && part.size == 0; }
};

AxisWindow x_axis(const ResizeStep& step);
AxisWindow y_axis(const ResizeStep& step);

// REQUIRES: from > 0, place < to. Looks at no window.
Taps taps_of(const AxisWindow& axis, std::uint32_t place);

// Weights along y, for each output row of a window. `first` counts from the beginning of the input window.
struct ColumnWeights {
  std::span<const Taps> taps;
  std::span<const std::uint32_t> weights;  // `stride` per output row, as of paired_weight()
  std::size_t stride = 0;

  static Bytes bytes(const AxisWindow& axis);
  // Takes bytes(axis) from `scratch`.
  static ColumnWeights make(const AxisWindow& axis, Scratch& scratch);
};

// How the places of a row are made: `lanes` at once, the last one first when mirrored.
struct RowOrder {
  std::uint32_t lanes = 4;
  bool mirrored = false;
};

// Weights along x, laid out for kernels that make `lanes` places at once with 16-bit multiplications. Every
// place has groups · 4 taps, of which the last may be zero; the number of places is filled up to a multiple
// of the lanes. A place's group is four words: the low 15 bits of the first and the second pair of its weights,
// then the high ones.
//
//   for places q … q+lanes-1, for j = 0 … 3:   groups × [place q+j, place q+4+j, place q+8+j, …]
struct RowWeights {
  static constexpr int kLowBits = 15;
  static constexpr std::uint32_t kGroup = 4;

  std::span<const std::uint32_t> first;  // where each place's taps begin: bytes from the beginning of the input window
  std::span<const std::uint32_t> words;
  std::uint32_t groups = 0;
  std::uint32_t lanes = 0;

  // Where the words of a place begin; those of its next group stand `lanes` further on.
  std::size_t index(std::size_t place) const;
  // REQUIRES: tap < kGroup.
  static std::int32_t weight(const std::uint32_t* words, std::uint32_t tap) {
    const unsigned shift = tap % 2 * 16;
    return static_cast<std::int32_t>((words[tap / 2] >> shift & 0xffff) | (words[tap / 2 + 2] >> shift & 0xffff)
                                                                              << kLowBits);
  }

  static Bytes bytes(const AxisWindow& axis);
  static RowWeights make(const AxisWindow& axis, RowOrder order, Scratch& scratch);
};

struct PixelKernels;

// Resizes the rows of a ResizeStep's input window and pushes those of its output window; or, when a tensor comes
// next, flips them and writes them there.
class ResizeStage final : public RowSink {
 public:
  static Bytes bytes(const ResizeStep& step);

  // Takes bytes(step) from `scratch`. `next` receives the rows.
  void prepare(const ResizeStep& step, Scratch& scratch, RowSink& next);
  // The same with the plain kernels, to see what the others are worth.
  void prepare_plain(const ResizeStep& step, Scratch& scratch, RowSink& next);
  void push(const std::uint8_t* row) override;

 private:
  void prepare(const ResizeStep& step, Scratch& scratch);
  void emit(std::uint32_t place);

  const PixelKernels* kernels_ = nullptr;
  RowSink* next_ = nullptr;
  TensorWriter* tensor_ = nullptr;  // null: rows are pushed
  RowWeights x_;
  ColumnWeights y_;
  bool x_is_identity_ = false;
  bool mirrored_ = false;
  std::uint32_t out_width_ = 0;
  std::uint32_t out_height_ = 0;
  std::size_t plane_words_ = 0;
  std::uint32_t ring_rows_ = 1;
  std::uint32_t* ring_ = nullptr;  // rows after the pass along x, as Planes
  const std::uint32_t** sum_rows_ = nullptr;
  std::uint8_t* out_row_ = nullptr;
  std::uint32_t rows_in_ = 0;
  std::uint32_t rows_out_ = 0;
};

}  // namespace foreload
