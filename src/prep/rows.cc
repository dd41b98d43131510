#include "prep/rows.h"

#include <cstring>

namespace foreload {

bool ViewStage::is_plain(const View& view, Interval x, Interval y) {
  return !view.x.mirrored && view.x.visible(x) == x && view.y.visible(y) == y;
}

Bytes ViewStage::bytes(Interval x) {
  return 2 * row_bytes(static_cast<std::uint64_t>(x.size()));
}

void ViewStage::prepare(const View& view, Interval x, Interval y, Scratch& scratch, RowSink& next) {
  Interval seen_x = view.x.visible(x);
  Interval seen_y = view.y.visible(y);
  if (seen_x.size() == 0 || seen_y.size() == 0) {
    seen_x = {x.first, x.first};
    seen_y = {y.end, y.end};
  }
  next_ = &next;
  mirrored_ = view.x.mirrored;
  left_ = seen_x.first - x.first;
  width_ = seen_x.size();
  above_ = seen_y.first - y.first;
  height_ = seen_y.size();
  below_ = y.end - seen_y.end;
  rows_in_ = 0;
  const std::size_t size = row_bytes(static_cast<std::uint64_t>(x.size()));
  black_ = scratch.take<std::uint8_t>(size).data();
  row_ = scratch.take<std::uint8_t>(size).data();
  std::memset(black_, 0, size);
  std::memset(row_, 0, size);
}

void ViewStage::start() {
  push_black(above_);
}

void ViewStage::push(const std::uint8_t* row) {
  std::uint8_t* to = row_ + static_cast<std::size_t>(left_) * kPixelBytes;
  const auto count = static_cast<std::size_t>(width_);
  if (!mirrored_) {
    std::memcpy(to, row, count * kPixelBytes);
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(to + i * kPixelBytes, row + (count - 1 - i) * kPixelBytes, kPixelBytes);
    }
  }
  next_->push(row_);
  if (++rows_in_ == height_) push_black(below_);
}

void ViewStage::push_black(std::int64_t rows) {
  for (std::int64_t i = 0; i < rows; ++i) next_->push(black_);
}

}  // namespace foreload
