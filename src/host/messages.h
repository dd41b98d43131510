// What members of a host say to each other: one request, one reply, each a frame of fixed length. The first eight bytes
// mean the same in every version, so that a stranger's version can be named. Parsing is total: any bytes give a
// message or nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "foreload/types.h"

namespace foreload {

inline constexpr std::uint16_t kHostProtocol = 1;

struct HostRequest {
  enum class Kind : std::uint16_t {
    kJoin = 1,   // may I join? `index` is where I listen, `budget` what I expect; 0: whatever you have
    kWatch = 2,  // show me the control block; I will not join
    kFetch = 3,  // hand me the memory of `object`
  };
  std::uint16_t protocol = kHostProtocol;
  Kind kind = Kind::kJoin;
  std::uint32_t index = 0;
  Bytes budget = 0;
  std::uint64_t object = 0;
};

struct HostReply {
  enum class Kind : std::uint16_t {
    kWelcome = 1,     // with the control block's descriptor
    kUndecided = 2,   // I am about to join myself, and have let go of whoever I was talking to
    kProtocol = 3,    // refused: I speak `protocol`
    kBudget = 4,      // refused: the host has `budget`
    kObject = 5,      // with the object's descriptors
    kNotHere = 6,     // I do not have it
    kNotAllowed = 7,  // refused: another user
  };
  std::uint16_t protocol = kHostProtocol;
  Kind kind = Kind::kWelcome;
  Bytes budget = 0;
};

using RequestBytes = std::array<std::byte, 32>;
using ReplyBytes = std::array<std::byte, 16>;

RequestBytes encode(const HostRequest& request);
ReplyBytes encode(const HostReply& reply);
// Nothing: it is no message of ours, of whatever version. Of another version only `protocol` is filled in.
std::optional<HostRequest> parse_request(std::span<const std::byte> bytes);
std::optional<HostReply> parse_reply(std::span<const std::byte> bytes);

}  // namespace foreload
