// What somebody who connected to the metrics server asks for: as much of HTTP/1.1 as a scrape needs. Requests may hold
// anything. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace foreload {

enum class Asked { kMetrics, kHealth, kUnknown, kOtherMethod, kMalformed };

// Where the head of a request ends, behind its empty line; nothing while that has not come. The first `searched` bytes
// were looked at before.
std::optional<std::size_t> head_end(std::string_view received, std::size_t searched = 0);
Asked asked_for(std::string_view head);

struct HttpAnswer {
  int status = 200;
  std::string_view type = "text/plain; charset=utf-8";
  std::string_view body{};
};
// The bytes of it; the connection is closed behind them.
std::string http_bytes(const HttpAnswer& answer);

}  // namespace foreload
