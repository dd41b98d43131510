// A picture is always a view (cut, mirrored, padded) of the result of the last resize, or of the source.
// Views compose into views, so any number of cuts and mirrorings between two resizes costs nothing.
//
//   source ─view─ resize ─view─ resize ─view─ tensor
//     ◄─box──  ◄──in─out──  ◄──in─out──  ◄──valid──      settle() walks this way
#include "prep/geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "prep/resize.h"

namespace foreload {

namespace {

Interval window(const AxisWindow& axis) {
  if (axis.out.size() == 0) return {};
  if (axis.is_identity()) return axis.out;
  const Taps first = taps_of(axis, static_cast<std::uint32_t>(axis.out.first));
  const Taps last = taps_of(axis, static_cast<std::uint32_t>(axis.out.end - 1));
  return {first.first, std::int64_t{last.first} + last.count};
}

bool shows_source_upright(const AxisView& view) {
  return !view.mirrored && view.valid == Interval{0, view.size};
}

// The view in pixels of the smaller source, and which part of it is meant.
Eighths scale_view(AxisView& view, std::uint32_t eighths) {
  const std::int64_t begin = view.origin * eighths;
  const std::int64_t end = (view.origin + view.size) * eighths;
  const std::int64_t first = begin / 8;
  view = AxisView::whole((end + 7) / 8 - first);
  view.origin = first;
  return {static_cast<std::uint64_t>(begin - first * 8), static_cast<std::uint64_t>(end - begin)};
}

bool fits(const Dimensions& size) {
  constexpr auto kMost = static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max());
  return size.width > 0 && size.height > 0 && size.width <= kMost && size.height <= kMost;
}

}  // namespace

void AxisView::cut(std::int64_t offset, std::int64_t length) {
  origin += mirrored ? -offset : offset;
  size = length;
  valid = {std::max<std::int64_t>(valid.first - offset, 0), std::min(valid.end - offset, length)};
  if (valid.size() == 0) valid = {};
}

void AxisView::mirror() {
  origin += mirrored ? 1 - size : size - 1;
  mirrored = !mirrored;
  valid = valid.size() == 0 ? Interval{} : Interval{size - valid.end, size - valid.first};
}

Interval AxisView::visible(Interval places) const {
  const Interval seen{std::max(places.first, valid.first), std::min(places.end, valid.end)};
  return seen.size() == 0 ? Interval{} : seen;
}

Interval AxisView::in_parent(Interval places) const {
  const Interval seen = visible(places);
  if (seen.size() == 0) return {};
  if (mirrored) return {origin - seen.end + 1, origin - seen.first + 1};
  return {origin + seen.first, origin + seen.end};
}

void Geometry::begin(Dimensions source) {
  steps_.clear();
  view_ = {AxisView::whole(source.width), AxisView::whole(source.height)};
}

Dimensions Geometry::size() const {
  return {static_cast<std::uint32_t>(view_.x.size), static_cast<std::uint32_t>(view_.y.size)};
}

Status Geometry::cut(std::int64_t left, std::int64_t top, Dimensions size) {
  if (!fits(size)) return Error{Code::kBadSample, fmt::format("a cut of {}x{} pixels", size.width, size.height)};
  view_.x.cut(left, size.width);
  view_.y.cut(top, size.height);
  return {};
}

Status Geometry::resize(Dimensions to) {
  const Dimensions from = size();
  if (from.width == to.width && from.height == to.height) return {};
  if (!fits(to)) {
    return Error{Code::kBadSample, fmt::format("its {}x{} pixels would be resized to {}x{}", from.width, from.height,
                                               to.width, to.height)};
  }
  steps_.push_back({.view = view_, .to = to});
  view_ = {AxisView::whole(to.width), AxisView::whole(to.height)};
  return {};
}

void Geometry::mirror() {
  view_.x.mirror();
}

void Geometry::mirror_rows() {
  view_.y.mirror();
}

std::uint32_t Geometry::smallest_scale() const {
  if (steps_.empty()) return 8;
  const ResizeStep& step = steps_.front();
  if (!shows_source_upright(step.view.x) || !shows_source_upright(step.view.y)) return 8;
  // libjpeg-turbo is quick at these; at the eighths between them it is slower than at full size.
  for (const std::uint32_t eighths : {1u, 2u, 4u}) {
    if (step.view.x.size * eighths >= std::int64_t{step.to.width} * 8 &&
        step.view.y.size * eighths >= std::int64_t{step.to.height} * 8) {
      return eighths;
    }
  }
  return 8;
}

void Geometry::scale_source(std::uint32_t eighths) {
  ResizeStep& step = steps_.front();
  step.part_x = scale_view(step.view.x, eighths);
  step.part_y = scale_view(step.view.y, eighths);
}

void Geometry::settle() {
  Interval x = view_.x.in_parent({0, view_.x.size});
  Interval y = view_.y.in_parent({0, view_.y.size});
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (x.size() == 0 || y.size() == 0) x = y = {};
    step->out_x = x;
    step->out_y = y;
    step->in_x = window(x_axis(*step));
    step->in_y = window(y_axis(*step));
    x = step->view.x.in_parent(step->in_x);
    y = step->view.y.in_parent(step->in_y);
  }
  if (x.size() == 0 || y.size() == 0) x = y = {};
  source_box_ = {static_cast<std::uint32_t>(x.first), static_cast<std::uint32_t>(y.first),
                 static_cast<std::uint32_t>(x.size()), static_cast<std::uint32_t>(y.size())};
}

}  // namespace foreload
