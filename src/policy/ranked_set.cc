#include "policy/ranked_set.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace foreload {

RankedSet::RankedSet(std::uint64_t samples) : places_(samples) {
  FORELOAD_CHECK(samples < std::numeric_limits<std::uint32_t>::max(), "places have 32 bits");
  heap_.reserve(samples);  // memory that is not written to is not taken
}

std::optional<RankedSet::Member> RankedSet::largest() const {
  if (heap_.empty()) return std::nullopt;
  return heap_.front();
}

void RankedSet::set(std::size_t place, const Member& member) {
  heap_[place] = member;
  places_[member.id] = static_cast<std::uint32_t>(place + 1);
}

void RankedSet::put(const Member& member) {
  if (!has(member.id)) {
    heap_.push_back(member);
    return rise(heap_.size() - 1);
  }
  const std::size_t place = places_[member.id] - 1;
  const bool larger = member > heap_[place];
  heap_[place] = member;
  larger ? rise(place) : sink(place);
}

void RankedSet::remove(SampleId id) {
  if (!has(id)) return;
  const std::size_t place = places_[id] - 1;
  const Member last = heap_.back();
  heap_.pop_back();
  places_[id] = 0;
  if (last.id == id) return;
  const bool larger = place > 0 && last > heap_[(place - 1) / 2];
  heap_[place] = last;
  larger ? rise(place) : sink(place);
}

void RankedSet::rise(std::size_t place) {
  const Member member = heap_[place];
  while (place > 0 && member > heap_[(place - 1) / 2]) {
    set(place, heap_[(place - 1) / 2]);
    place = (place - 1) / 2;
  }
  set(place, member);
}

void RankedSet::sink(std::size_t place) {
  const Member member = heap_[place];
  for (std::size_t child = 2 * place + 1; child < heap_.size(); child = 2 * place + 1) {
    if (child + 1 < heap_.size() && heap_[child + 1] > heap_[child]) ++child;
    if (member > heap_[child]) break;
    set(place, heap_[child]);
    place = child;
  }
  set(place, member);
}

void RankedSet::restore() {
  std::ranges::make_heap(heap_);
  for (std::size_t place = 0; place < heap_.size(); ++place) set(place, heap_[place]);
}

}  // namespace foreload
