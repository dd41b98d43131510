#include "prep/plan.h"

namespace foreload {

void Plan::begin(Dimensions source) {
  used_ = 0;
  erasures_.clear();
  open_stage(source);
}

Dimensions Plan::size() const {
  const Stage& stage = stages_[used_ - 1];
  return stage.strokes.empty() ? stage.geometry.size() : stage.size;
}

Geometry& Plan::geometry() {
  if (!stages_[used_ - 1].strokes.empty()) open_stage(size());
  return stages_[used_ - 1].geometry;
}

void Plan::add(const Stroke& stroke) {
  Stage& stage = stages_[used_ - 1];
  stage.size = size_after(stroke, size());
  stage.strokes.push_back(stroke);
}

void Plan::settle() {
  geometry();
  for (std::size_t i = 0; i < used_; ++i) stages_[i].geometry.settle();
}

void Plan::open_stage(Dimensions source) {
  if (used_ == stages_.size()) stages_.emplace_back();
  Stage& stage = stages_[used_++];
  stage.geometry.begin(source);
  stage.strokes.clear();
}

}  // namespace foreload
