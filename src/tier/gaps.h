// Gaps: which stretches of a file of fixed size are free. Best fit, so that a hole is filled by the sample that left
// it; neighbours grow together. Bounded: beyond kMost gaps the smallest are forgotten, until the file is opened again.
// The caller locks.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "foreload/types.h"

namespace foreload {

class Gaps {
 public:
  static constexpr std::size_t kMost = 65536;
  static constexpr Bytes kBytesEach = 112;  // two tree nodes

  // REQUIRES: free of everything that is allocated.
  void release(Bytes offset, Bytes length);
  // Offset of `length` bytes, or nothing. REQUIRES: length > 0.
  std::optional<Bytes> allocate(Bytes length);

  Bytes free_bytes() const { return free_; }
  std::size_t count() const { return by_offset_.size(); }

 private:
  using ByOffset = std::map<Bytes, Bytes>;  // offset → length
  void insert(Bytes offset, Bytes length);
  void erase(ByOffset::iterator gap);

  ByOffset by_offset_;
  std::set<std::pair<Bytes, Bytes>> by_length_;  // (length, offset)
  Bytes free_ = 0;
};

}  // namespace foreload
