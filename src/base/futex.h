// Waiting on a 32-bit word, in private or shared memory. Absolute deadlines on the steady clock. Nothing spins.
#pragma once

#include <atomic>
#include <cstdint>

#include "foreload/types.h"

namespace foreload {

// Sleeps while `word` is `expected`, until futex_wake or the deadline. May return early: test again.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Time deadline);
void futex_wake_one(const std::atomic<std::uint32_t>& word);
void futex_wake_all(const std::atomic<std::uint32_t>& word);

}  // namespace foreload
