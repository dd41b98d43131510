#include "policy/retrying.h"

#include <algorithm>

#include "base/random.h"

namespace foreload {

bool may_pass(int http_status) {
  switch (http_status) {
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return true;
    default:
      return false;
  }
}

bool is_throttling(int http_status) {
  return http_status == 429 || http_status == 503;
}

std::optional<Duration> pause_after(const RetryOptions& options, unsigned attempt, Duration asked, std::uint64_t key) {
  if (attempt >= options.attempts) return std::nullopt;
  const unsigned doublings = std::min(attempt > 0 ? attempt - 1 : 0, 30u);
  const Duration whole = std::min(options.longest_pause, options.first_pause * (std::int64_t{1} << doublings));
  // Between half of it and the whole.
  KeyedRandom random(key, 0, attempt, 0);
  const Duration pause = whole / 2 + Duration(random.below(static_cast<std::uint64_t>(whole.count() / 2) + 1));
  return std::max(pause, std::min(asked, options.longest_asked));
}

}  // namespace foreload
