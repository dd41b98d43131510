// Geometry: what the ops of a chain do to the outline of one sample, without any pixels. Ops apply cuts,
// resizes and mirrorings in order; settle() then works backwards from the finished picture and finds, for
// every step, the window that is really needed: so only that part of the source has to be decoded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "foreload/result.h"
#include "foreload/source.h"

namespace foreload {

struct Box {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;

  bool operator==(const Box&) const = default;
};

// Places first … end-1.
struct Interval {
  std::int64_t first = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end > first ? end - first : 0; }
  bool operator==(const Interval&) const = default;
};

// One axis of a picture that is cut out of another one, its parent. Place i shows the parent's place
// origin + i (origin - i when mirrored) if i is inside `valid`, and is black elsewhere.
struct AxisView {
  std::int64_t size = 0;
  std::int64_t origin = 0;
  bool mirrored = false;
  Interval valid;

  static AxisView whole(std::int64_t size) { return {size, 0, false, {0, size}}; }
  void cut(std::int64_t offset, std::int64_t length);
  void mirror();
  // The part of `places` that the parent shows, and where in the parent that is.
  Interval visible(Interval places) const;
  Interval in_parent(Interval places) const;
};

struct View {
  AxisView x;
  AxisView y;
};

// The part of an axis that a resize shows, in eighths of a pixel. Size 0: all of it, which is so unless the source is
// decoded at a fraction of its size.
struct Eighths {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};

// The resize of a view, and the windows of both that are needed.
struct ResizeStep {
  View view;
  Dimensions to;
  Interval in_x, in_y;    // of the view
  Interval out_x, out_y;  // of the result
  Eighths part_x{}, part_y{};
};

class Geometry {
 public:
  void begin(Dimensions source);

  // The picture as the next op sees it.
  Dimensions size() const;
  // Places outside of the picture are black.
  Status cut(std::int64_t left, std::int64_t top, Dimensions size);
  Status resize(Dimensions to);
  void mirror();
  void mirror_rows();  // upside down

  // The smallest fraction of the source's size, in eighths, that leaves the first resize something to shrink or to
  // keep: 1, 2, 4, or 8 when there is none. Pure.
  std::uint32_t smallest_scale() const;
  // The source is decoded at eighths/8 of its size. REQUIRES: at least smallest_scale(), less than 8; before settle().
  void scale_source(std::uint32_t eighths);

  // To be called once after all ops; the functions below are valid then.
  void settle();
  Box source_box() const { return source_box_; }  // zero rows when nothing of the source is visible
  std::span<const ResizeStep> steps() const { return steps_; }
  const View& last_view() const { return view_; }  // of the last step's result, or of the source

 private:
  std::vector<ResizeStep> steps_;
  View view_;
  Box source_box_;
};

}  // namespace foreload
