#include "lab/two_list_cache.h"

#include <algorithm>
#include <cmath>

namespace foreload {
namespace {

constexpr double kGibibyte = 1024.0 * 1024 * 1024;
constexpr Bytes kPage = 4096;

Bytes pages(Bytes length) {
  return std::max<Bytes>(1, (length + kPage - 1) / kPage) * kPage;
}

}  // namespace

// The kernel's inactive_is_low(): the square root of ten times the gibibytes, at least 1.
TwoListCache::TwoListCache(std::uint64_t samples, Bytes capacity)
    : capacity_(capacity),
      ratio_(std::max(1.0, std::floor(std::sqrt(10 * static_cast<double>(capacity) / kGibibyte)))),
      nodes_(samples),
      left_at_(samples) {}

void TwoListCache::clear() {
  nodes_.assign(nodes_.size(), {});
  left_at_.assign(left_at_.size(), 0);
  lists_[0] = lists_[1] = {};
  age_ = 1;
}

void TwoListCache::push(std::size_t list, std::uint32_t id) {
  List& to = lists_[list];
  nodes_[id].newer = kNone;
  nodes_[id].older = to.newest;
  (to.newest == kNone ? to.oldest : nodes_[to.newest].newer) = id;
  to.newest = id;
  to.bytes += nodes_[id].length;
}

void TwoListCache::remove(std::size_t list, std::uint32_t id) {
  List& from = lists_[list];
  const Node& node = nodes_[id];
  (node.newer == kNone ? from.newest : nodes_[node.newer].older) = node.older;
  (node.older == kNone ? from.oldest : nodes_[node.older].newer) = node.newer;
  from.bytes -= node.length;
}

bool TwoListCache::inactive_is_low() const {
  return static_cast<double>(lists_[kInactiveList].bytes) * ratio_ < static_cast<double>(lists_[kActiveList].bytes);
}

void TwoListCache::make_room(Bytes more) {
  while (used() + more > capacity_ && used() > 0) {
    while (lists_[kActiveList].oldest != kNone && (inactive_is_low() || lists_[kInactiveList].oldest == kNone)) {
      const std::uint32_t id = lists_[kActiveList].oldest;
      remove(kActiveList, id);
      nodes_[id].state = State::kInactive;
      push(kInactiveList, id);
    }
    const std::uint32_t victim = lists_[kInactiveList].oldest;
    remove(kInactiveList, victim);
    nodes_[victim].state = State::kAway;
    age_ += nodes_[victim].length;
    left_at_[victim] = age_;
  }
}

bool TwoListCache::read(SampleId id, Bytes length) {
  const auto place = static_cast<std::uint32_t>(id);
  Node& node = nodes_[place];
  if (node.state == State::kActive) return true;
  if (node.state != State::kAway) {
    // Read again while inactive: the first time it is marked, and then it is active.
    if (node.state == State::kInactive) {
      node.state = State::kReferenced;
      return true;
    }
    remove(kInactiveList, place);
    node.state = State::kActive;
    push(kActiveList, place);
    age_ += node.length;
    return true;
  }
  node.length = static_cast<std::uint32_t>(pages(length));
  if (node.length > capacity_) return false;
  make_room(node.length);
  const bool returns = left_at_[place] != 0 && age_ - left_at_[place] <= lists_[kActiveList].bytes;
  node.state = returns ? State::kActive : State::kReferenced;  // the read itself is its first use
  push(returns ? kActiveList : kInactiveList, place);
  if (returns) age_ += node.length;
  return false;
}

}  // namespace foreload
