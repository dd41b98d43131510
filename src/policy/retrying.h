// When a failed request or read is tried again: pauses that double, with jitter, for a bounded number of attempts; a
// server that names a longer pause gets it, up to a bound. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "foreload/types.h"

namespace foreload {

struct RetryOptions {
  unsigned attempts = 6;
  Duration first_pause = std::chrono::milliseconds(100);
  Duration longest_pause = std::chrono::seconds(10);  // of those that we choose
  Duration longest_asked = std::chrono::seconds(10);  // of those that a server asks for
};

// Of files that can not be read: a disk or a mounted server answers soon or never.
inline constexpr RetryOptions kFileRetry{
    .attempts = 4, .first_pause = std::chrono::milliseconds(40), .longest_pause = std::chrono::seconds(1)};

// Whether the same request may get another answer later: 408, 429, 500, 502, 503, 504.
bool may_pass(int http_status);
// 429 and 503: the server says that there is too much of it.
bool is_throttling(int http_status);

// How long to wait after attempt number `attempt` (1, 2, …) failed; nothing: give up. `asked` is the server's wish, 0:
// none. `key` decides the jitter: different for different clients, or they would all return at once.
std::optional<Duration> pause_after(const RetryOptions& options, unsigned attempt, Duration asked, std::uint64_t key);

}  // namespace foreload
