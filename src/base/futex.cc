#include "base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>

#include "base/check.h"
#include "base/clock.h"

namespace foreload {

namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

// FUTEX_PRIVATE_FLAG is left out: the word may be in memory that other processes map as well.
long futex(const std::atomic<std::uint32_t>& word, int op, std::uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&word), op, value, timeout, nullptr,
                 FUTEX_BITSET_MATCH_ANY);
}

void wake(const std::atomic<std::uint32_t>& word, int count) {
  const long woken = futex(word, FUTEX_WAKE, static_cast<std::uint32_t>(count), nullptr);
  FORELOAD_CHECK(woken >= 0, "waking needs only a mapped, aligned word");
}

}  // namespace

// FUTEX_WAIT_BITSET, unlike FUTEX_WAIT, takes an absolute time on CLOCK_MONOTONIC, the steady clock.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Time deadline) {
  const std::int64_t at = std::max<std::int64_t>(deadline.count(), 0);
  const timespec until{.tv_sec = at / 1'000'000'000, .tv_nsec = at % 1'000'000'000};
  const long result = futex(word, FUTEX_WAIT_BITSET, expected, deadline == kNever ? nullptr : &until);
  if (result == 0) return;
  FORELOAD_CHECK(errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT,
                 "waiting needs only a mapped, aligned word and a valid time");
}

void futex_wake_one(const std::atomic<std::uint32_t>& word) {
  wake(word, 1);
}

void futex_wake_all(const std::atomic<std::uint32_t>& word) {
  wake(word, INT_MAX);
}

}  // namespace foreload
