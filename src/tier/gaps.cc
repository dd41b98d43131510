#include "tier/gaps.h"

#include <iterator>

namespace foreload {

void Gaps::release(Bytes offset, Bytes length) {
  if (length == 0) return;
  auto next = by_offset_.lower_bound(offset);
  if (next != by_offset_.end() && next->first == offset + length) {
    length += next->second;
    const auto merged = next++;
    erase(merged);
  }
  if (next != by_offset_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      length += before->second;
      erase(before);
    }
  }
  insert(offset, length);
}

std::optional<Bytes> Gaps::allocate(Bytes length) {
  const auto fit = by_length_.lower_bound({length, 0});
  if (fit == by_length_.end()) return std::nullopt;
  const auto [room, offset] = *fit;
  erase(by_offset_.find(offset));
  if (room > length) insert(offset + length, room - length);
  return offset;
}

void Gaps::insert(Bytes offset, Bytes length) {
  by_offset_.emplace(offset, length);
  by_length_.emplace(length, offset);
  free_ += length;
  if (by_offset_.size() > kMost) erase(by_offset_.find(by_length_.begin()->second));
}

void Gaps::erase(ByOffset::iterator gap) {
  free_ -= gap->second;
  by_length_.erase({gap->second, gap->first});
  by_offset_.erase(gap);
}

}  // namespace foreload
