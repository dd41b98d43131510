// TwoListCache: which samples Linux' page cache keeps, as far as epochs of reads decide it. New pages enter the
// inactive list; a second read there makes them active; when room is needed the oldest inactive ones go, and the oldest
// active ones become inactive when the inactive list is small beside them. A page that comes back soon after it left
// (its distance, counted in pages that left or became active, is within the active list) becomes active at once. All
// pages of a sample are read together, so they are one. docs/design/simulate.md has the measurement that it is held
// against.
#pragma once

#include <cstdint>
#include <vector>

#include "foreload/types.h"

namespace foreload {

class TwoListCache {
 public:
  TwoListCache(std::uint64_t samples, Bytes capacity);

  // A read of the whole sample: whether it was there.
  bool read(SampleId id, Bytes length);
  Bytes used() const { return lists_[0].bytes + lists_[1].bytes; }
  void clear();

 private:
  enum class State : std::uint8_t { kAway, kInactive, kReferenced, kActive };
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::size_t kInactiveList = 0;
  static constexpr std::size_t kActiveList = 1;

  struct List {
    std::uint32_t newest = kNone;
    std::uint32_t oldest = kNone;
    Bytes bytes = 0;
  };
  struct Node {
    std::uint32_t newer = kNone;
    std::uint32_t older = kNone;
    std::uint32_t length = 0;
    State state = State::kAway;
  };

  void push(std::size_t list, std::uint32_t id);
  void remove(std::size_t list, std::uint32_t id);
  void make_room(Bytes more);
  bool inactive_is_low() const;

  Bytes capacity_;
  double ratio_;  // how often the active list may be as large as the inactive one
  std::vector<Node> nodes_;
  std::vector<Bytes> left_at_;  // age_ when it left; 0: it never was here
  List lists_[2];
  Bytes age_ = 1;  // bytes that have left or become active
};

}  // namespace foreload
