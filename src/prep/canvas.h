// Canvas: a whole picture in scratch memory, for ops that need its pixels. Rows are as of rows.h, so that a
// canvas can be pushed through resize and tensor writer like a decoder's rows. The fourth byte of a pixel is
// ignored here as well. Borrows its memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "foreload/source.h"
#include "prep/geometry.h"
#include "prep/rows.h"
#include "prep/scratch.h"

namespace foreload {

struct Canvas {
  std::uint8_t* data = nullptr;
  Dimensions size;

  // Rows stand close together, so that a tall and narrow picture takes no more than its pixels.
  static Bytes bytes(Dimensions size) { return Bytes{size.width} * size.height * kPixelBytes + kRowSlack; }
  std::size_t stride() const { return size.width * kPixelBytes; }
  std::uint8_t* row(std::size_t y) const { return data + y * stride(); }
};

// Writes the rows of a view to a canvas of the view's size: mirrored if the view is, black where it shows nothing.
class CanvasWriter final : public RowSink {
 public:
  void prepare(const View& view, const Canvas& canvas);
  void push(const std::uint8_t* row) override;

 private:
  Canvas canvas_;
  bool mirrored_ = false;
  std::size_t left_ = 0;
  std::size_t count_ = 0;
  std::size_t row_ = 0;
};

// Keeps the rows of a window and pushes them in the opposite order: what a picture that stands on its head needs,
// as decoders go from top to bottom.
class ReverseStage final : public RowSink {
 public:
  // `x`, `y`: the window of the view that is wanted.
  static bool is_needed(const View& view, Interval x, Interval y);
  static Bytes bytes(const View& view, Interval x, Interval y);

  void prepare(const View& view, Interval x, Interval y, Scratch& scratch, RowSink& next);
  void push(const std::uint8_t* row) override;

 private:
  RowSink* next_ = nullptr;
  std::uint8_t* rows_ = nullptr;
  std::size_t row_bytes_ = 0;
  std::size_t height_ = 0;
  std::size_t rows_in_ = 0;
};

}  // namespace foreload
