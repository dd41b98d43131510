// EventQueue: what happens when, under a virtual clock. Of two at the same moment the one that was put in first comes
// first, so that a run is the same every time. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "foreload/types.h"

namespace foreload {

template <typename What>
class EventQueue {
 public:
  Time now() const { return now_; }
  bool is_empty() const { return heap_.empty(); }
  std::uint64_t count() const { return made_; }             // of all that were put in
  Time next() const { return heap_.front().at; }            // REQUIRES: !is_empty().
  void advance(Time time) { now_ = std::max(now_, time); }  // nothing before it is left

  // At once if `at` has passed.
  void put(Time at, const What& what) {
    heap_.push_back({std::max(at, now_), made_++, what});
    std::ranges::push_heap(heap_, std::greater{});
  }
  // The next one; the clock is there then. REQUIRES: !is_empty().
  What take() {
    std::ranges::pop_heap(heap_, std::greater{});
    const Entry entry = heap_.back();
    heap_.pop_back();
    now_ = entry.at;
    return entry.what;
  }

 private:
  struct Entry {
    Time at{};
    std::uint64_t order = 0;
    What what{};

    bool operator>(const Entry& other) const { return at != other.at ? at > other.at : order > other.order; }
    bool operator<(const Entry& other) const { return other > *this; }
    bool operator>=(const Entry& other) const { return !(*this < other); }
    bool operator<=(const Entry& other) const { return !(*this > other); }
    bool operator==(const Entry& other) const { return at == other.at && order == other.order; }
  };

  std::vector<Entry> heap_;
  std::uint64_t made_ = 0;
  Time now_{0};
};

}  // namespace foreload
