#include "prep/canvas.h"

#include <cstring>

#include "base/check.h"

namespace foreload {

void CanvasWriter::prepare(const View& view, const Canvas& canvas) {
  const Interval x = view.x.visible({0, view.x.size});
  const Interval y = view.y.visible({0, view.y.size});
  FORELOAD_CHECK(canvas.size.width == view.x.size && canvas.size.height == view.y.size, "the canvas fits the view");
  canvas_ = canvas;
  mirrored_ = view.x.mirrored;
  left_ = static_cast<std::size_t>(x.first);
  count_ = static_cast<std::size_t>(x.size());
  row_ = static_cast<std::size_t>(y.first);
  const bool covered = x.size() == view.x.size && y.size() == view.y.size;
  if (!covered) std::memset(canvas.data, 0, Canvas::bytes(canvas.size));
}

void CanvasWriter::push(const std::uint8_t* row) {
  std::uint8_t* to = canvas_.row(row_++) + left_ * kPixelBytes;
  if (!mirrored_) {
    std::memcpy(to, row, count_ * kPixelBytes);
    return;
  }
  for (std::size_t i = 0; i < count_; ++i) {
    std::memcpy(to + i * kPixelBytes, row + (count_ - 1 - i) * kPixelBytes, kPixelBytes);
  }
}

bool ReverseStage::is_needed(const View& view, Interval x, Interval y) {
  return view.y.mirrored && view.x.visible(x).size() > 0 && view.y.visible(y).size() > 1;
}

Bytes ReverseStage::bytes(const View& view, Interval x, Interval y) {
  return Scratch::padded(Canvas::bytes(
      {static_cast<std::uint32_t>(view.x.visible(x).size()), static_cast<std::uint32_t>(view.y.visible(y).size())}));
}

void ReverseStage::prepare(const View& view, Interval x, Interval y, Scratch& scratch, RowSink& next) {
  next_ = &next;
  row_bytes_ = static_cast<std::size_t>(view.x.visible(x).size()) * kPixelBytes;
  height_ = static_cast<std::size_t>(view.y.visible(y).size());
  rows_in_ = 0;
  rows_ = scratch.take<std::uint8_t>(row_bytes_ * height_ + kRowSlack).data();
}

void ReverseStage::push(const std::uint8_t* row) {
  std::memcpy(rows_ + rows_in_ * row_bytes_, row, row_bytes_);
  if (++rows_in_ < height_) return;
  for (std::size_t y = height_; y-- > 0;) next_->push(rows_ + y * row_bytes_);
}

}  // namespace foreload
