// The header Content-Range of a 206 answer. Untrusted.
#pragma once

#include <optional>
#include <string_view>

#include "foreload/types.h"

namespace foreload {

struct ContentRange {
  Bytes first = 0;
  Bytes last = 0;  // inclusive
  Bytes size = 0;  // of the whole object

  bool operator==(const ContentRange&) const = default;
};

// Of "bytes FIRST-LAST/SIZE" with FIRST ≤ LAST < SIZE; nothing for anything else, also for an unknown size.
std::optional<ContentRange> parse_content_range(std::string_view text);

}  // namespace foreload
