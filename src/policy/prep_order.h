// PrepOrder: which of the batches under preparation a free worker turns to. The one that is needed soonest wins: of one
// stream the one with the lowest number, of several that whose learner will run out first. Of learners that have run
// out already, the one that took a batch last waits for the others. Pure.
#pragma once

#include <compare>
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

// How soon a batch is needed: less is sooner.
struct PrepNeed {
  Time at{};                 // if the learner goes on as it did; not before now, because one that pauses needs nothing
  std::uint64_t before = 0;  // batches that it takes first
  Time last{};               // when it took one

  auto operator<=>(const PrepNeed&) const = default;
};
PrepNeed need_of(const LearnerPace& pace, std::uint64_t number, Time now);

// Nothing when no candidate has a ready sample.
std::optional<std::uint32_t> soonest_needed(std::span<const PrepCandidate> candidates);

}  // namespace foreload
