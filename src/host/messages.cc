// Request:  magic u32 | protocol u16 | kind u16 | index u32 | 0 u32 | budget u64 | object u64
// Reply:    magic u32 | protocol u16 | kind u16 | budget u64
// Both sides run on one machine, so the byte order is its own.
#include "host/messages.h"

#include <cstring>

namespace foreload {
namespace {

constexpr std::uint32_t kRequestMagic = 0x714c4f46;  // "FOLq"
constexpr std::uint32_t kReplyMagic = 0x724c4f46;    // "FOLr"

template <typename T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}
template <typename T>
T take(std::span<const std::byte> bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

// The part that never changes. Nothing: too short, or not ours.
std::optional<std::uint16_t> protocol_of(std::span<const std::byte> bytes, std::uint32_t magic) {
  if (bytes.size() < 8 || take<std::uint32_t>(bytes, 0) != magic) return std::nullopt;
  return take<std::uint16_t>(bytes, 4);
}

}  // namespace

RequestBytes encode(const HostRequest& request) {
  RequestBytes bytes{};
  put(bytes.data(), kRequestMagic);
  put(bytes.data() + 4, request.protocol);
  put(bytes.data() + 6, request.kind);
  put(bytes.data() + 8, request.index);
  put(bytes.data() + 16, request.budget);
  put(bytes.data() + 24, request.object);
  return bytes;
}

ReplyBytes encode(const HostReply& reply) {
  ReplyBytes bytes{};
  put(bytes.data(), kReplyMagic);
  put(bytes.data() + 4, reply.protocol);
  put(bytes.data() + 6, reply.kind);
  put(bytes.data() + 8, reply.budget);
  return bytes;
}

std::optional<HostRequest> parse_request(std::span<const std::byte> bytes) {
  const auto protocol = protocol_of(bytes, kRequestMagic);
  if (!protocol) return std::nullopt;
  if (*protocol != kHostProtocol) return HostRequest{.protocol = *protocol};
  if (bytes.size() != sizeof(RequestBytes)) return std::nullopt;
  const auto kind = take<std::uint16_t>(bytes, 6);
  if (kind < 1 || kind > 3) return std::nullopt;
  return HostRequest{.protocol = *protocol,
                     .kind = static_cast<HostRequest::Kind>(kind),
                     .index = take<std::uint32_t>(bytes, 8),
                     .budget = take<Bytes>(bytes, 16),
                     .object = take<std::uint64_t>(bytes, 24)};
}

std::optional<HostReply> parse_reply(std::span<const std::byte> bytes) {
  const auto protocol = protocol_of(bytes, kReplyMagic);
  if (!protocol) return std::nullopt;
  // A refusal by version is the one reply that every version understands.
  if (*protocol != kHostProtocol) return HostReply{.protocol = *protocol, .kind = HostReply::Kind::kProtocol};
  if (bytes.size() != sizeof(ReplyBytes)) return std::nullopt;
  const auto kind = take<std::uint16_t>(bytes, 6);
  if (kind < 1 || kind > 7) return std::nullopt;
  return HostReply{.protocol = *protocol, .kind = static_cast<HostReply::Kind>(kind), .budget = take<Bytes>(bytes, 8)};
}

}  // namespace foreload
