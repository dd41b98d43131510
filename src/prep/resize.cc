// The filter of output place p is a triangle around (p + 0.5) · from/to in the input, one pixel wide to
// each side, or from/to pixels when that is more. Its samples are divided by their sum and rounded to 22
// bits. All of it is plain IEEE double arithmetic in Pillow's order of operations, without contraction, so
// the weights are the same everywhere and the same as Pillow's.
#include "prep/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "prep/resize_kernels.h"

namespace foreload {

namespace {

struct Triangle {
  double scale;    // input places per output place
  double stretch;  // half the width of the triangle

  Triangle(std::uint32_t from, std::uint32_t to)
      : scale(static_cast<double>(from) / to), stretch(std::max(scale, 1.0)) {}

  double center(std::uint32_t place) const { return (place + 0.5) * scale; }
  std::uint32_t max_taps() const { return static_cast<std::uint32_t>(std::ceil(stretch)) * 2 + 1; }

  Taps taps(std::uint32_t place, std::uint32_t from) const {
    const double middle = center(place);
    const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(middle - stretch + 0.5), 0);
    const auto end = std::min<std::int64_t>(static_cast<std::int64_t>(middle + stretch + 0.5), from);
    return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end - first)};
  }

  double sample(std::uint32_t input, double middle) const {
    const double distance = std::abs((static_cast<double>(input) - middle + 0.5) * (1.0 / stretch));
    return distance < 1.0 ? 1.0 - distance : 0.0;
  }
};

// Calls store(tap, weight) for every tap of a place.
template <typename Store>
void weigh(const Triangle& triangle, std::uint32_t place, Taps taps, Store store) {
  const double middle = triangle.center(place);
  double sum = 0;
  for (std::uint32_t i = 0; i < taps.count; ++i) sum += triangle.sample(taps.first + i, middle);
  for (std::uint32_t i = 0; i < taps.count; ++i) {
    double weight = triangle.sample(taps.first + i, middle);
    if (sum != 0.0) weight /= sum;
    store(i, static_cast<std::int32_t>(0.5 + weight * (1 << kWeightBits)));
  }
}

AxisWindow x_axis(const ResizeStep& step) {
  return {static_cast<std::uint32_t>(step.view.x.size), step.to.width, step.in_x, step.out_x};
}

AxisWindow y_axis(const ResizeStep& step) {
  return {static_cast<std::uint32_t>(step.view.y.size), step.to.height, step.in_y, step.out_y};
}

std::size_t padded_places(const AxisWindow& axis) {
  return static_cast<std::size_t>(axis.out.size() + 3) / 4 * 4;
}

std::uint32_t groups_of(std::uint32_t taps) {
  return (taps + RowWeights::kGroup - 1) / RowWeights::kGroup;
}

// Of the whole axis, at most.
std::uint32_t most_groups(const AxisWindow& axis) {
  return groups_of(Triangle(axis.from, axis.to).max_taps());
}

std::uint32_t ring_rows(const AxisWindow& axis) {
  return axis.is_identity() ? 1 : Triangle(axis.from, axis.to).max_taps();
}

std::size_t out_row_bytes(const ResizeStep& step) {
  return row_bytes(static_cast<std::uint64_t>(step.out_x.size()));
}

}  // namespace

Taps taps_of(std::uint32_t from, std::uint32_t to, std::uint32_t place) {
  return Triangle(from, to).taps(place, from);
}

Bytes ColumnWeights::bytes(const AxisWindow& axis) {
  if (axis.is_identity()) return 0;
  const auto places = static_cast<Bytes>(axis.out.size());
  const Bytes stride = Triangle(axis.from, axis.to).max_taps();
  return Scratch::padded(places * sizeof(Taps)) + Scratch::padded(places * stride * sizeof(std::int32_t));
}

ColumnWeights ColumnWeights::make(const AxisWindow& axis, Scratch& scratch) {
  if (axis.is_identity()) return {};
  const Triangle triangle(axis.from, axis.to);
  const auto places = static_cast<std::uint32_t>(axis.out.size());
  const std::size_t stride = triangle.max_taps();
  const auto all_taps = scratch.take<Taps>(places);
  const auto weights = scratch.take<std::int32_t>(places * stride);
  for (std::uint32_t i = 0; i < places; ++i) {
    const auto place = static_cast<std::uint32_t>(axis.out.first) + i;
    const Taps taps = triangle.taps(place, axis.from);
    std::int32_t* to = weights.data() + i * stride;
    weigh(triangle, place, taps, [to](std::uint32_t tap, std::int32_t weight) { to[tap] = weight; });
    all_taps[i] = {taps.first - static_cast<std::uint32_t>(axis.in.first), taps.count};
  }
  return {all_taps, weights, stride};
}

std::size_t RowWeights::index(std::size_t place, std::size_t tap) const {
  const std::size_t pair = place / 4 * 2 + place % 2;
  const std::size_t half = place % 4 / 2;
  return ((pair * groups + tap / kGroup) * 2 + half) * 2 * kGroup + tap % kGroup;
}

Bytes RowWeights::bytes(const AxisWindow& axis) {
  if (axis.is_identity()) return 0;
  const Bytes places = padded_places(axis);
  return Scratch::padded(places * sizeof(std::uint32_t)) +
         Scratch::padded(places * most_groups(axis) * 2 * kGroup * sizeof(std::int16_t));
}

RowWeights RowWeights::make(const AxisWindow& axis, Scratch& scratch) {
  if (axis.is_identity()) return {};
  const Triangle triangle(axis.from, axis.to);
  const auto places = static_cast<std::uint32_t>(axis.out.size());
  const auto begin = static_cast<std::uint32_t>(axis.out.first);
  const auto in_begin = static_cast<std::uint32_t>(axis.in.first);
  std::uint32_t most_taps = 1;
  for (std::uint32_t i = 0; i < places; ++i) {
    most_taps = std::max(most_taps, triangle.taps(begin + i, axis.from).count);
  }
  const auto first = scratch.take<std::uint32_t>(padded_places(axis));
  const auto numbers = scratch.take<std::int16_t>(first.size() * most_groups(axis) * 2 * kGroup);
  std::fill(first.begin(), first.end(), 0u);
  std::fill(numbers.begin(), numbers.end(), std::int16_t{0});
  const RowWeights result{first, numbers, groups_of(most_taps)};
  // The last taps must stay inside the row and its slack: where they would not, a place begins earlier.
  const auto last_first = static_cast<std::uint32_t>(axis.in.size() + kRowSlack / kPixelBytes) - result.groups * kGroup;
  for (std::uint32_t i = 0; i < places; ++i) {
    const Taps taps = triangle.taps(begin + i, axis.from);
    first[i] = std::min(taps.first - in_begin, last_first);
    const std::uint32_t shift = taps.first - in_begin - first[i];
    weigh(triangle, begin + i, taps, [&](std::uint32_t tap, std::int32_t weight) {
      std::int16_t* low = numbers.data() + result.index(i, tap + shift);
      low[0] = static_cast<std::int16_t>(weight & ((1 << kLowBits) - 1));
      low[kGroup] = static_cast<std::int16_t>(weight >> kLowBits);
    });
  }
  return result;
}

Bytes ResizeStage::bytes(const ResizeStep& step) {
  return RowWeights::bytes(x_axis(step)) + ColumnWeights::bytes(y_axis(step)) +
         out_row_bytes(step) * (ring_rows(y_axis(step)) + Bytes{1});
}

void ResizeStage::prepare(const ResizeStep& step, Scratch& scratch, RowSink& next) {
  const AxisWindow x = x_axis(step);
  const AxisWindow y = y_axis(step);
  next_ = &next;
  x_is_identity_ = x.is_identity();
  y_is_identity_ = y.is_identity();
  x_ = RowWeights::make(x, scratch);
  y_ = ColumnWeights::make(y, scratch);
  out_width_ = static_cast<std::uint32_t>(x.out.size());
  out_height_ = static_cast<std::uint32_t>(y.out.size());
  row_bytes_ = out_row_bytes(step);
  ring_rows_ = ring_rows(y);
  ring_ = scratch.take<std::uint8_t>(row_bytes_ * ring_rows_).data();
  out_row_ = scratch.take<std::uint8_t>(row_bytes_).data();
  // The slack after each row is read, though it decides nothing.
  std::memset(ring_, 0, row_bytes_ * ring_rows_);
  rows_in_ = rows_out_ = 0;
}

void ResizeStage::push(const std::uint8_t* row) {
  std::uint8_t* slot = ring_ + std::size_t{rows_in_ % ring_rows_} * row_bytes_;
  if (x_is_identity_) {
    std::memcpy(slot, row, out_width_ * kPixelBytes);
  } else {
    best_resize_kernels().row({row, slot, x_});
  }
  ++rows_in_;
  if (y_is_identity_) {
    next_->push(slot);
    return;
  }
  while (rows_out_ < out_height_ && y_.taps[rows_out_].first + y_.taps[rows_out_].count <= rows_in_) emit(rows_out_++);
}

void ResizeStage::emit(std::uint32_t place) {
  const Taps taps = y_.taps[place];
  best_resize_kernels().column({.ring = ring_,
                                .row_bytes = row_bytes_,
                                .ring_rows = ring_rows_,
                                .first = taps.first % ring_rows_,
                                .weights = y_.weights.data() + place * y_.stride,
                                .count = taps.count,
                                .out = out_row_,
                                .bytes = (out_width_ * kPixelBytes + 63) / 64 * 64});
  next_->push(out_row_);
}

}  // namespace foreload
