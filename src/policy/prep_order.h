// PrepOrder: which of the batches under preparation a free worker turns to. The one that is needed soonest wins.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace foreload {

struct PrepCandidate {
  std::uint32_t slot = 0;
  std::uint64_t needed_at = 0;  // order of need: the batch's number in its stream
  std::uint32_t ready = 0;      // samples whose bytes are there and that nobody has claimed
};

// Nothing when no candidate has a ready sample.
std::optional<std::uint32_t> soonest_needed(std::span<const PrepCandidate> candidates);

}  // namespace foreload
