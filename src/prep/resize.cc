// The filter of output place p is a triangle around (p + 0.5) · from/to in the input, one pixel wide to
// each side, or from/to pixels when that is more. Its samples are divided by their sum and rounded to 22
// bits. All of it is plain IEEE double arithmetic in Pillow's order of operations, without contraction, so
// the weights are the same everywhere and the same as Pillow's.
#include "prep/resize.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "prep/resize_kernels.h"

namespace foreload {

namespace {

struct Triangle {
  double begin;    // of the part that is shown, in input places
  double scale;    // input places per output place
  double stretch;  // half the width of the triangle

  explicit Triangle(const AxisWindow& axis)
      : begin(static_cast<double>(axis.part.begin) / 8),
        scale((axis.part.size == 0 ? axis.from : static_cast<double>(axis.part.size) / 8) / axis.to),
        stretch(std::max(scale, 1.0)) {}

  double center(std::uint32_t place) const { return begin + (place + 0.5) * scale; }
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
  constexpr std::uint32_t kKept = 32;
  const double middle = triangle.center(place);
  std::array<double, kKept> kept;
  const auto sample = [&](std::uint32_t i) { return triangle.sample(taps.first + i, middle); };
  double sum = 0;
  for (std::uint32_t i = 0; i < taps.count; ++i) {
    const double weight = sample(i);
    if (i < kKept) kept[i] = weight;
    sum += weight;
  }
  for (std::uint32_t i = 0; i < taps.count; ++i) {
    double weight = i < kKept ? kept[i] : sample(i);
    if (sum != 0.0) weight /= sum;
    store(i, static_cast<std::int32_t>(0.5 + weight * (1 << kWeightBits)));
  }
}

std::size_t padded(std::int64_t places, std::size_t lanes) {
  return (static_cast<std::size_t>(places) + lanes - 1) / lanes * lanes;
}

std::uint32_t groups_of(std::uint32_t taps) {
  return (taps + RowWeights::kGroup - 1) / RowWeights::kGroup;
}

// Of a place inside the window. A triangle that is less than 4 wide never has more than 4.
std::uint32_t most_taps(const Triangle& triangle, const AxisWindow& axis) {
  if (triangle.stretch < 1.99) return RowWeights::kGroup;
  std::uint32_t most = 1;
  for (auto place = static_cast<std::uint32_t>(axis.out.first); place < axis.out.end; ++place) {
    most = std::max(most, triangle.taps(place, axis.from).count);
  }
  return most;
}

// Of the whole axis, at most.
std::uint32_t most_groups(const AxisWindow& axis) {
  return groups_of(Triangle(axis).max_taps());
}

std::uint32_t ring_rows(const AxisWindow& axis) {
  return axis.is_identity() ? 1 : Triangle(axis).max_taps();
}

std::size_t plane_words(const ResizeStep& step) {
  return padded(step.out_x.size(), kMostLanes);
}

std::size_t out_row_bytes(const ResizeStep& step) {
  return row_bytes(static_cast<std::uint64_t>(step.out_x.size()));
}

// Beyond this many taps the rounded weights may add up to so much more than one that white becomes 256; only the
// plain loops look for that.
constexpr std::uint32_t kMostExactTaps = 8192;

const PixelKernels& kernels_for(const AxisWindow& x, const AxisWindow& y) {
  const bool exact = Triangle(x).max_taps() <= kMostExactTaps && ring_rows(y) <= kMostExactTaps;
  return exact ? pixel_kernels() : plain_kernels();
}

}  // namespace

AxisWindow x_axis(const ResizeStep& step) {
  return {static_cast<std::uint32_t>(step.view.x.size), step.to.width, step.in_x, step.out_x, step.part_x};
}

AxisWindow y_axis(const ResizeStep& step) {
  return {static_cast<std::uint32_t>(step.view.y.size), step.to.height, step.in_y, step.out_y, step.part_y};
}

Taps taps_of(const AxisWindow& axis, std::uint32_t place) {
  return Triangle(axis).taps(place, axis.from);
}

Bytes ColumnWeights::bytes(const AxisWindow& axis) {
  const auto places = static_cast<Bytes>(axis.out.size());
  return Scratch::padded(places * sizeof(Taps)) + Scratch::padded(places * ring_rows(axis) * sizeof(std::uint32_t));
}

ColumnWeights ColumnWeights::make(const AxisWindow& axis, Scratch& scratch) {
  const Triangle triangle(axis);
  const auto places = static_cast<std::uint32_t>(axis.out.size());
  const auto in_begin = static_cast<std::uint32_t>(axis.in.first);
  const std::size_t stride = ring_rows(axis);
  const auto all_taps = scratch.take<Taps>(places);
  const auto weights = scratch.take<std::uint32_t>(places * stride);
  for (std::uint32_t i = 0; i < places; ++i) {
    const auto place = static_cast<std::uint32_t>(axis.out.first) + i;
    std::uint32_t* to = weights.data() + i * stride;
    if (axis.is_identity()) {
      all_taps[i] = {place - in_begin, 1};
      to[0] = paired_weight(1 << kWeightBits);
      continue;
    }
    const Taps taps = triangle.taps(place, axis.from);
    weigh(triangle, place, taps, [to](std::uint32_t tap, std::int32_t weight) { to[tap] = paired_weight(weight); });
    all_taps[i] = {taps.first - in_begin, taps.count};
  }
  return {all_taps, weights, stride};
}

std::size_t RowWeights::index(std::size_t place) const {
  const std::size_t vector = place / lanes * 4 + place % 4;
  return (vector * groups * (lanes / 4) + place % lanes / 4) * kGroup;
}

Bytes RowWeights::bytes(const AxisWindow& axis) {
  if (axis.is_identity()) return 0;
  const Bytes places = padded(axis.out.size(), kMostLanes);
  return Scratch::padded(places * sizeof(std::uint32_t)) +
         Scratch::padded(places * most_groups(axis) * kGroup * sizeof(std::uint32_t));
}

RowWeights RowWeights::make(const AxisWindow& axis, RowOrder order, Scratch& scratch) {
  if (axis.is_identity()) return {};
  const Triangle triangle(axis);
  const auto places = static_cast<std::uint32_t>(axis.out.size());
  const auto begin = static_cast<std::uint32_t>(axis.out.first);
  const auto in_begin = static_cast<std::uint32_t>(axis.in.first);
  const std::uint32_t groups = groups_of(most_taps(triangle, axis));
  const auto first = scratch.take<std::uint32_t>(padded(places, order.lanes));
  const auto words = scratch.take<std::uint32_t>(first.size() * groups * kGroup);
  std::fill(first.begin(), first.end(), 0u);
  std::fill(words.begin(), words.end(), 0u);
  const RowWeights result{first, words, groups, order.lanes};
  // The last taps must stay inside the row and its slack: where they would not, a place begins earlier.
  const auto last_first = static_cast<std::uint32_t>(axis.in.size() + kRowSlack / kPixelBytes) - groups * kGroup;
  for (std::uint32_t i = 0; i < places; ++i) {
    const std::uint32_t place = begin + (order.mirrored ? places - 1 - i : i);
    const Taps taps = triangle.taps(place, axis.from);
    const std::uint32_t from = std::min(taps.first - in_begin, last_first);
    first[i] = from * kPixelBytes;
    const std::uint32_t shift = taps.first - in_begin - from;
    std::uint32_t* of_place = words.data() + result.index(i);
    weigh(triangle, place, taps, [&](std::uint32_t tap, std::int32_t weight) {
      const std::uint32_t at = tap + shift;
      std::uint32_t* pair = of_place + at / kGroup * order.lanes + at % kGroup / 2;
      pair[0] |= static_cast<std::uint32_t>(weight & ((1 << kLowBits) - 1)) << (at % 2 * 16);
      pair[2] |= static_cast<std::uint32_t>(weight >> kLowBits) << (at % 2 * 16);
    });
  }
  return result;
}

Bytes ResizeStage::bytes(const ResizeStep& step) {
  const Bytes rows = ring_rows(y_axis(step));
  return RowWeights::bytes(x_axis(step)) + ColumnWeights::bytes(y_axis(step)) +
         Scratch::padded(rows * sizeof(std::uint32_t*)) +
         Scratch::padded(rows * plane_words(step) * 3 * sizeof(std::uint32_t)) + out_row_bytes(step);
}

void ResizeStage::prepare(const ResizeStep& step, Scratch& scratch, RowSink& next) {
  kernels_ = &kernels_for(x_axis(step), y_axis(step));
  next_ = &next;
  tensor_ = next.tensor();
  if (tensor_ && &tensor_->kernels() != kernels_) tensor_ = nullptr;
  prepare(step, scratch);
}

void ResizeStage::prepare_plain(const ResizeStep& step, Scratch& scratch, RowSink& next) {
  kernels_ = &plain_kernels();
  next_ = &next;
  tensor_ = nullptr;
  prepare(step, scratch);
}

void ResizeStage::prepare(const ResizeStep& step, Scratch& scratch) {
  const AxisWindow x = x_axis(step);
  const AxisWindow y = y_axis(step);
  mirrored_ = tensor_ && tensor_->mirrored();
  x_is_identity_ = x.is_identity();
  x_ = RowWeights::make(x, {kernels_->lanes, mirrored_}, scratch);
  y_ = ColumnWeights::make(y, scratch);
  out_width_ = static_cast<std::uint32_t>(x.out.size());
  out_height_ = static_cast<std::uint32_t>(y.out.size());
  plane_words_ = plane_words(step);
  ring_rows_ = ring_rows(y);
  sum_rows_ = scratch.take<const std::uint32_t*>(ring_rows_).data();
  ring_ = scratch.take<std::uint32_t>(ring_rows_ * plane_words_ * 3).data();
  out_row_ = scratch.take<std::uint8_t>(out_row_bytes(step)).data();
  rows_in_ = rows_out_ = 0;
}

void ResizeStage::push(const std::uint8_t* row) {
  const Planes slot{ring_ + std::size_t{rows_in_++ % ring_rows_} * plane_words_ * 3, plane_words_};
  if (x_is_identity_) {
    kernels_->split({row, out_width_, mirrored_, slot});
  } else {
    kernels_->row({row, slot, x_});
  }
  while (rows_out_ < out_height_ && y_.taps[rows_out_].first + y_.taps[rows_out_].count <= rows_in_) emit(rows_out_++);
}

void ResizeStage::emit(std::uint32_t place) {
  const Taps taps = y_.taps[place];
  std::uint32_t slot = taps.first % ring_rows_;
  for (std::uint32_t i = 0; i < taps.count; ++i, slot = slot + 1 == ring_rows_ ? 0 : slot + 1) {
    sum_rows_[i] = ring_ + slot * plane_words_ * 3;
  }
  const ColumnResize job{.rows = sum_rows_,
                         .weights = y_.weights.data() + place * y_.stride,
                         .count = taps.count,
                         .stride = plane_words_,
                         .width = out_width_};
  if (tensor_) {
    kernels_->column_to_tensor(job, tensor_->next_row());
  } else {
    kernels_->column(job, out_row_);
    next_->push(out_row_);
  }
}

}  // namespace foreload
