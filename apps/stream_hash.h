// Order and content of what was delivered, as sums that do not depend on who received which part: the ranks' values add
// up to the one-process value (mod 2^64).
#pragma once

#include <span>

#include "foreload/batch.h"
#include "foreload/types.h"

namespace foreload {

struct StreamHash {
  std::uint64_t order = 0;  // Σ xxh3(id, seed = position)
  std::uint64_t content = 0;  // Σ xxh3(tensor ‖ label, seed = position); when mixed … ‖ label ‖ other label ‖ own share

  StreamHash& operator+=(const StreamHash& other) {
    order += other.order;
    content += other.content;
    return *this;
  }
};

// `positions`: of the batch's samples, derived from the assignment and not from the batch.
StreamHash hash_batch(const Batch& batch, std::span<const Position> positions);

}  // namespace foreload
