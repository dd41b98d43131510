#include "policy/coalescing.h"

#include <algorithm>

#include "base/check.h"

namespace foreload {
namespace {

constexpr std::size_t kRun = 4;

}  // namespace

// A request in the making: the range [begin, end) of an object.
struct Coalescer::Group {
  std::vector<Places::iterator> places;
  Bytes begin = 0;
  Bytes end = 0;
  Bytes wanted = 0;

  std::uint64_t object() const { return places.front()->second.range.object; }
  void add(Places::iterator place) {
    const WantedRange& range = place->second.range;
    begin = places.empty() ? range.offset : std::min(begin, range.offset);
    end = std::max(end, range.offset + range.length);
    wanted += range.length;
    places.push_back(place);
  }
};

void Coalescer::add(const WantedRange& range) {
  const Place place{range.object, range.offset, range.tag};
  const bool added = places_.emplace(place, Waiting{range, turn_}).second;
  FORELOAD_CHECK(added, "tags differ");
  oldest_.emplace(turn_++, place);
}

std::vector<WantedRange> Coalescer::take(bool patient) {
  if (oldest_.empty()) return {};
  const Group group = gather(places_.find(oldest_.begin()->second));
  if (patient && may_grow(group)) return {};
  last_object_ = group.object();
  last_end_ = group.end;
  last_ranges_ = group.places.size();
  std::vector<WantedRange> ranges;
  for (const Places::iterator place : group.places) {
    ranges.push_back(place->second.range);
    remove(place);
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const WantedRange& a, const WantedRange& b) { return a.offset < b.offset; });
  return ranges;
}

Coalescer::Group Coalescer::gather(Places::iterator first) {
  Group group;
  auto after = std::next(first);
  auto before = first == places_.begin() ? places_.end() : std::prev(first);
  group.add(first);
  while (after != places_.end() && fits(group, after->second.range)) group.add(after++);
  while (before != places_.end() && fits(group, before->second.range)) {
    group.add(before);
    before = before == places_.begin() ? places_.end() : std::prev(before);
  }
  return group;
}

bool Coalescer::may_grow(const Group& group) const {
  const bool follows =
      group.object() == last_object_ && group.begin >= last_end_ && group.begin - last_end_ <= options_.small_gap;
  // A few neighbours may be chance, and what is drawn at random is not worth waiting for.
  const bool is_run = group.places.size() >= kRun || (follows && last_ranges_ >= kRun);
  if (!is_run) return false;
  const Bytes mean = group.wanted / group.places.size();
  if (group.end - group.begin + mean > options_.longest) return false;
  // What waits behind it did not fit.
  const auto next = places_.lower_bound({group.object(), group.end, 0});
  const bool ends_here = next != places_.end() && std::get<0>(next->first) == group.object() &&
                         std::get<1>(next->first) - group.end <= options_.small_gap;
  return !ends_here;
}

bool Coalescer::fits(const Group& group, const WantedRange& next) const {
  if (next.object != group.object()) return false;
  const Bytes next_end = next.offset + next.length;
  const bool is_after = next.offset >= group.end;
  if (!is_after && next_end > group.begin) return false;  // overlaps are not worth the trouble
  const Bytes gap = is_after ? next.offset - group.end : group.begin - next_end;
  const Bytes length = group.end - group.begin + gap + next.length;
  if (length > options_.longest || gap > options_.large_gap) return false;
  const Bytes wanted = group.wanted + next.length;
  return gap <= options_.small_gap || length - wanted <= wanted / 16;
}

void Coalescer::clear() {
  places_.clear();
  oldest_.clear();
}

void Coalescer::remove(Places::iterator place) {
  oldest_.erase(place->second.turn);
  places_.erase(place);
}

}  // namespace foreload
