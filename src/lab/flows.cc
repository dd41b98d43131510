// Progressive filling: all flows that are not held up yet have the same rate, the level. It rises to the next point at
// which a resource is used up or a flow has its limit; those flows stay there, and the rest goes on. Every round ends
// at least one flow, and as hosts are alike most rounds end many.
#include "lab/flows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace foreload {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kSame = 1 + 1e-12;  // levels that differ by rounding only
constexpr double kUsedUp = 1e-12;    // of a capacity: the rest is rounding
constexpr double kNanosecond = 1e-9;
constexpr double kLongest = 4e9;  // seconds, that a run may take

}  // namespace

Flows::Flows(std::vector<double> capacities)
    : capacities_(std::move(capacities)), left_(capacities_.size()), taken_(capacities_.size()) {}

void Flows::set_capacity(Time now, ResourceId resource, double capacity) {
  move_on(now);
  capacities_[resource] = capacity;
  is_shared_ = false;
}

void Flows::start(Time now, const Path& path, double bytes, std::uint64_t tag) {
  move_on(now);
  flows_.push_back({path, bytes, 0, tag});
  is_shared_ = false;
}

void Flows::cancel(Time now, std::uint64_t tag) {
  move_on(now);
  if (std::erase_if(flows_, [&](const Flow& flow) { return flow.tag == tag; }) > 0) is_shared_ = false;
}

void Flows::move_on(Time now) {
  if (now <= since_) return;
  if (!is_shared_) share();
  const double seconds = std::chrono::duration<double>(now - since_).count();
  for (Flow& flow : flows_) flow.left -= flow.rate * seconds;
  since_ = now;
}

std::optional<Time> Flows::next_end() {
  if (!is_shared_) share();
  return next_end_;
}

std::span<const std::uint64_t> Flows::ended(Time now) {
  move_on(now);
  ended_.clear();
  // What would end within this nanosecond has ended.
  std::erase_if(flows_, [&](const Flow& flow) {
    const bool end = flow.left <= flow.rate * kNanosecond || std::isinf(flow.rate);
    if (end) ended_.push_back(flow.tag);
    return end;
  });
  if (!ended_.empty()) is_shared_ = false;
  return ended_;
}

double Flows::rate(std::uint64_t tag) {
  if (!is_shared_) share();
  const auto found = std::ranges::find(flows_, tag, &Flow::tag);
  return found == flows_.end() ? 0 : found->rate;
}

double Flows::next_level(double level, std::span<const std::uint32_t> open) const {
  double next = kInfinite;
  for (const ResourceId resource : touched_) {
    if (taken_[resource] > 0) next = std::min(next, level + std::max(0.0, left_[resource]) / taken_[resource]);
  }
  for (const std::uint32_t index : open) next = std::min(next, flows_[index].path.limit);
  return next;
}

// Flows that can not grow beyond `level`, which resources have been charged for already.
void Flows::freeze(double level, std::vector<std::uint32_t>& open) {
  const auto is_held_up = [&](const Flow& flow) {
    if (flow.path.limit <= level * kSame) return true;
    return std::any_of(flow.path.uses.begin(), flow.path.uses.begin() + flow.path.count, [&](const Use& use) {
      return std::isfinite(capacities_[use.resource]) && left_[use.resource] <= capacities_[use.resource] * kUsedUp;
    });
  };
  std::erase_if(open, [&](std::uint32_t index) {
    Flow& flow = flows_[index];
    if (!is_held_up(flow)) return false;
    flow.rate = level;
    for (std::size_t i = 0; i < flow.path.count; ++i) taken_[flow.path.uses[i].resource] -= flow.path.uses[i].per_byte;
    return true;
  });
}

void Flows::share() {
  touched_.clear();
  open_.clear();
  for (std::uint32_t index = 0; index < flows_.size(); ++index) {
    open_.push_back(index);
    const Path& path = flows_[index].path;
    for (std::size_t i = 0; i < path.count; ++i) {
      const Use& use = path.uses[i];
      if (taken_[use.resource] == 0) touched_.push_back(use.resource);
      taken_[use.resource] += use.per_byte;
      left_[use.resource] = capacities_[use.resource];
    }
  }
  double level = 0;
  while (!open_.empty()) {
    const double next = next_level(level, open_);
    if (std::isinf(next)) break;
    for (const ResourceId resource : touched_) left_[resource] -= (next - level) * taken_[resource];
    level = next;
    freeze(level, open_);
    for (const ResourceId resource : touched_) {
      if (taken_[resource] < 1e-15) taken_[resource] = 0;
    }
  }
  for (const std::uint32_t index : open_) flows_[index].rate = kInfinite;
  for (const ResourceId resource : touched_) taken_[resource] = 0;
  is_shared_ = true;
  double soonest = kInfinite;
  for (const Flow& flow : flows_) {
    soonest = std::min(soonest, std::isinf(flow.rate) ? 0 : std::max(0.0, flow.left) / flow.rate);
  }
  next_end_.reset();
  if (soonest < kLongest) next_end_ = since_ + Duration(static_cast<std::int64_t>(std::ceil(soonest * 1e9)));
}

}  // namespace foreload
