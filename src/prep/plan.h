// Plan: everything that the ops of a chain do to one sample, decided before a pixel is decoded. It is a row of
// stages: the outline of a picture (geometry), then strokes on its pixels. Strokes need the whole picture, so each
// stage but the last ends in a canvas; the last has no strokes and goes straight into the tensor. A chain without
// strokes is one stage.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "prep/geometry.h"
#include "prep/stroke.h"

namespace foreload {

struct Stage {
  Geometry geometry;
  std::vector<Stroke> strokes;
  Dimensions size;  // after the strokes
};

// A box of the finished tensor that gets one colour.
struct Erasure {
  Box box;
  std::array<double, 3> value;  // of an element, per channel
  std::uint32_t op = 0;         // which one asked for it
};

// Not thread-safe; one per runner. Keeps its memory from sample to sample.
class Plan {
 public:
  void begin(Dimensions source);

  // The picture as the next op sees it.
  Dimensions size() const;
  // For cuts, resizes and mirrorings of that picture.
  Geometry& geometry();
  // Of the part that is decoded.
  Geometry& source_geometry() { return stages_[0].geometry; }
  void add(const Stroke& stroke);
  void erase(const Erasure& erasure) { erasures_.push_back(erasure); }

  // To be called once after all ops; the functions below are valid then.
  void settle();
  std::span<const Stage> stages() const { return {stages_.data(), used_}; }
  std::span<Erasure> erasures() { return erasures_; }

 private:
  void open_stage(Dimensions source);

  std::vector<Stage> stages_;
  std::size_t used_ = 0;
  std::vector<Erasure> erasures_;
};

}  // namespace foreload
