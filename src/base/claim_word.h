// ClaimWord: the 64 bits through which a slot of an arena or ring moves by compare-and-swap. It says what
// the slot is (phase), how often it is used (count), who has claimed it (member, member generation) and
// which life of the slot this is (generation), so that a word from an earlier life never matches.
#pragma once

#include <cstdint>

namespace foreload {

// One life of one member of a host: who claims something. In private memory there is only the default.
struct MemberId {
  std::uint8_t index = 0;
  std::uint16_t generation = 0;

  bool operator==(const MemberId&) const = default;
};

struct ClaimWord {
  std::uint8_t phase = 0;
  std::uint8_t member = 0;  // of the claiming MemberId
  std::uint16_t member_generation = 0;
  std::uint16_t count = 0;
  std::uint16_t generation = 0;

  MemberId owner() const { return {member, member_generation}; }

  constexpr std::uint64_t packed() const {
    return std::uint64_t{phase} | std::uint64_t{member} << 8 | std::uint64_t{member_generation} << 16 |
           std::uint64_t{count} << 32 | std::uint64_t{generation} << 48;
  }
  static constexpr ClaimWord unpack(std::uint64_t word) {
    return {.phase = static_cast<std::uint8_t>(word),
            .member = static_cast<std::uint8_t>(word >> 8),
            .member_generation = static_cast<std::uint16_t>(word >> 16),
            .count = static_cast<std::uint16_t>(word >> 32),
            .generation = static_cast<std::uint16_t>(word >> 48)};
  }
};

}  // namespace foreload
