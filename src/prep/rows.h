// Rows of pixels on their way from the decoder to the tensor. A pixel is four bytes: R, G, B and one that
// is ignored. Every stage takes one row at a time and pushes rows on; nothing holds a whole picture.
#pragma once

#include <cstddef>
#include <cstdint>

#include "prep/geometry.h"
#include "prep/scratch.h"

namespace foreload {

inline constexpr std::size_t kPixelBytes = 4;
// Bytes that may be read after the last pixel of a row; their values do not matter.
inline constexpr std::size_t kRowSlack = 64;

// Memory that a row of `pixels` takes, slack included; a multiple of 64.
constexpr std::size_t row_bytes(std::uint64_t pixels) {
  return (pixels * kPixelBytes + kRowSlack + 63) / 64 * 64;
}

class TensorWriter;

class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void push(const std::uint8_t* row) = 0;
  // The end of the chain, if this is it: a stage may then write to the tensor itself instead of pushing rows.
  virtual TensorWriter* tensor() { return nullptr; }
};

// Turns rows of a parent picture into rows of a view of it that is mirrored or has black borders.
class ViewStage final : public RowSink {
 public:
  // True when the rows of the parent are those of the view, so that no stage is needed.
  static bool is_plain(const View& view, Interval x, Interval y);
  static Bytes bytes(Interval x);

  // `x`, `y`: the window of the view that is wanted.
  void prepare(const View& view, Interval x, Interval y, Scratch& scratch, RowSink& next);
  // Pushes the black rows above the picture; all of them when nothing of the parent is visible.
  void start();
  void push(const std::uint8_t* row) override;

 private:
  void push_black(std::int64_t rows);

  RowSink* next_ = nullptr;
  bool mirrored_ = false;
  std::int64_t left_ = 0;   // black pixels left of the picture
  std::int64_t width_ = 0;  // visible pixels
  std::int64_t above_ = 0;
  std::int64_t height_ = 0;
  std::int64_t below_ = 0;
  std::int64_t rows_in_ = 0;
  std::uint8_t* black_ = nullptr;
  std::uint8_t* row_ = nullptr;
};

}  // namespace foreload
