// PrepOrder: which of the batches under preparation a free worker turns to. The one that is needed soonest wins: of one
// stream the one with the lowest number, of several that whose learner will run out first. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "foreload/types.h"

namespace foreload {

struct PrepCandidate {
  std::uint32_t slot = 0;
  std::uint64_t needed_at = 0;  // order of need: the batch's number in its stream
  std::uint32_t ready = 0;      // samples whose bytes are there and that nobody has claimed
};

// How a learner goes through its batches.
struct LearnerPace {
  std::uint64_t next = 0;  // the batch that it takes next
  Time last{};             // when it took the one before
  Duration step{};         // what it does with a batch, without waiting for the next
};

// When the learner needs batch `number`, if it goes on as it did: not before `now`, because one that pauses needs
// nothing before it goes on.
Time needed_at(const LearnerPace& pace, std::uint64_t number, Time now);

// Nothing when no candidate has a ready sample.
std::optional<std::uint32_t> soonest_needed(std::span<const PrepCandidate> candidates);

}  // namespace foreload
