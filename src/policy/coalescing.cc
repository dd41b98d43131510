#include "policy/coalescing.h"

#include <algorithm>

#include "base/check.h"

namespace foreload {

// A request in the making: the range [begin, end) of an object.
struct Coalescer::Group {
  std::vector<WantedRange> ranges;
  Bytes begin = 0;
  Bytes end = 0;
  Bytes wanted = 0;
};

void Coalescer::add(const WantedRange& range) {
  const Place place{range.object, range.offset, range.tag};
  const bool added = places_.emplace(place, Waiting{range, turn_}).second;
  FORELOAD_CHECK(added, "tags differ");
  oldest_.emplace(turn_++, place);
}

std::vector<WantedRange> Coalescer::take() {
  if (oldest_.empty()) return {};
  const auto first = places_.find(oldest_.begin()->second);
  Group group;
  auto after = std::next(first);
  auto before = first == places_.begin() ? places_.end() : std::prev(first);
  move_into(group, first);
  while (after != places_.end() && fits(group, after->second.range)) move_into(group, after++);
  while (before != places_.end() && fits(group, before->second.range)) {
    const auto taken = before;
    before = before == places_.begin() ? places_.end() : std::prev(before);
    move_into(group, taken);
  }
  std::sort(group.ranges.begin(), group.ranges.end(),
            [](const WantedRange& a, const WantedRange& b) { return a.offset < b.offset; });
  return std::move(group.ranges);
}

bool Coalescer::fits(const Group& group, const WantedRange& next) const {
  if (next.object != group.ranges.front().object) return false;
  const Bytes next_end = next.offset + next.length;
  const bool is_after = next.offset >= group.end;
  if (!is_after && next_end > group.begin) return false;  // overlaps are not worth the trouble
  const Bytes gap = is_after ? next.offset - group.end : group.begin - next_end;
  const Bytes length = group.end - group.begin + gap + next.length;
  if (length > options_.longest || gap > options_.large_gap) return false;
  const Bytes wanted = group.wanted + next.length;
  return gap <= options_.small_gap || length - wanted <= wanted / 16;
}

void Coalescer::move_into(Group& group, Places::iterator place) {
  const Waiting& waiting = place->second;
  const WantedRange& range = waiting.range;
  group.begin = group.ranges.empty() ? range.offset : std::min(group.begin, range.offset);
  group.end = std::max(group.end, range.offset + range.length);
  group.wanted += range.length;
  group.ranges.push_back(range);
  oldest_.erase(waiting.turn);
  places_.erase(place);
}

}  // namespace foreload
