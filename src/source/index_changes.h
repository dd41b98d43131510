// What distinguishes a new index of a dataset from the one that did not fit any more: for the person who did not know
// that files came or went.
#pragma once

#include <cstdint>
#include <string>

#include "source/index.h"

namespace foreload {

struct IndexChanges {
  std::uint64_t added = 0;
  std::uint64_t removed = 0;
  std::uint64_t changed = 0;  // the same key with another length or, in a folder, another time

  bool any() const { return added + removed + changed > 0; }
  std::string text() const;  // "+3 samples, -1, 2 changed"

  bool operator==(const IndexChanges&) const = default;
};

// Takes 16 bytes of memory for every sample of both while it works.
IndexChanges compare_indexes(const IndexView& before, const IndexView& after);

}  // namespace foreload
