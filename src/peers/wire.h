// What agents of different hosts say to each other, as bytes: little-endian, every length bounded. Parsing is total:
// any bytes give a message that follows all rules, or nothing. The first eight bytes of all but SampleFrame mean the
// same in every version, so that a stranger's version can be named.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foreload/types.h"
#include "peers/peers.h"

namespace foreload {

inline constexpr std::uint16_t kPeerProtocol = 2;
inline constexpr std::size_t kMostItems = 16'384;            // of one request
inline constexpr std::size_t kLongestPeerText = 256;         // a name, or why somebody is refused
inline constexpr std::size_t kMostPeerCards = 4'096;         // hosts that one answer tells of
inline constexpr Bytes kPartBytes = 1_MiB;                   // longer samples come in parts
inline constexpr std::size_t kSampleFrameBytes = 32;         // before the part itself
inline constexpr std::size_t kMostRequestBytes = 576 << 10;  // of a FetchRequest or Hello
inline constexpr std::size_t kMostAnswerBytes = 2 << 20;     // of a HelloAnswer, or a SampleFrame with its part

// Which samples are wanted.
struct FetchRequest {
  std::uint16_t protocol = kPeerProtocol;
  PeerKey key{};
  std::vector<PeerItem> items{};  // at most kMostItems

  bool operator==(const FetchRequest&) const = default;
};

// A part of one sample, which follows it in the message: all of it, or kPartBytes from a multiple of kPartBytes on. Or
// of the JPEG that was cut out of the sample: then length and hash are that one's.
struct SampleFrame {
  std::uint32_t index = 0;                  // in the request
  PeerResult result = PeerResult::kAbsent;  // kHere or kAbsent; without the sample the rest is 0
  bool is_cut = false;                      // REQUIRES: not empty
  Bytes length = 0;                         // of the sample
  Bytes offset = 0;                         // of this part
  std::uint64_t hash = 0;                   // xxh3 of the sample

  bool operator==(const SampleFrame&) const = default;
};

// What a host has, for the roster. It says so itself; others pass it on as it is.
struct PeerCard {
  HostIndex host = 0;
  std::uint32_t learners = 0;
  Bytes memory = 0;
  Bytes disk = 0;
  std::string name{};  // under which others reach it

  bool operator==(const PeerCard&) const = default;
};

struct Hello {
  std::uint16_t protocol = kPeerProtocol;
  std::uint64_t nonce = 0;  // another one each time an agent starts
  std::uint32_t hosts = 0;  // that the job has
  std::string job{};
  PeerCard card{};  // of whoever says hello

  bool operator==(const Hello&) const = default;
};

struct HelloAnswer {
  std::uint16_t protocol = kPeerProtocol;
  std::uint64_t nonce = 0;
  std::string refusal{};          // why whoever said hello is no peer; empty: it is welcome
  std::vector<PeerCard> cards{};  // of the answering host first, then of others that it knows

  bool operator==(const HelloAnswer&) const = default;
};

// No control characters, not too long: what may stand in a message and be shown to the user.
bool is_peer_text(std::string_view text);

// Texts are cut and cleaned to what is_peer_text() takes. REQUIRES: the other bounds are kept.
std::vector<std::byte> encode(const FetchRequest& request);
std::vector<std::byte> encode(const Hello& hello);
std::vector<std::byte> encode(const HelloAnswer& answer);
std::array<std::byte, kSampleFrameBytes> encode(const SampleFrame& frame);

// Nothing: it is no message of ours, of whatever version. Of another version only `protocol` is filled in.
std::optional<FetchRequest> parse_fetch_request(std::span<const std::byte> bytes);
std::optional<Hello> parse_hello(std::span<const std::byte> bytes);
std::optional<HelloAnswer> parse_hello_answer(std::span<const std::byte> bytes);
// `part`: how many bytes follow the frame.
std::optional<SampleFrame> parse_sample_frame(std::span<const std::byte, kSampleFrameBytes> bytes, Bytes part);

}  // namespace foreload
