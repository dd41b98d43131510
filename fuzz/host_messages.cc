// What members of a host say to each other over arbitrary bytes: a message or nothing, and a message survives the way
// back.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "host/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto request = foreload::parse_request(bytes)) {
    const auto again = foreload::parse_request(foreload::encode(*request));
    if (!again || again->protocol != request->protocol || again->kind != request->kind ||
        again->index != request->index || again->budget != request->budget || again->object != request->object) {
      std::abort();
    }
  }
  if (const auto reply = foreload::parse_reply(bytes)) {
    const auto again = foreload::parse_reply(foreload::encode(*reply));
    if (!again || again->protocol != reply->protocol || again->kind != reply->kind || again->budget != reply->budget) {
      std::abort();
    }
  }
  return 0;
}
