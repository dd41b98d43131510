// StreamCard: what a member needs to know to prepare samples of another one's stream. It stands at the beginning of the
// stream's shared memory; behind it are the bytes in transit and the ring:
//
//   [ card: 64 KiB ][ arena of the feeder ][ ring ][ peer desk ]
//
// Whoever reads a card does not trust its writer.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "foreload/result.h"
#include "foreload/types.h"
#include "host/control.h"
#include "pipeline/ring.h"
#include "plan/roster.h"
#include "prep/chain.h"

namespace foreload {

struct StreamCard {
  static constexpr Bytes kBytes = 64_KiB;

  RingOptions ring{};
  Bytes arena = 0;  // bytes of it
  std::uint64_t seed = 0;
  std::uint64_t positions = 0;
  ObjectId homes = 0;  // the shared arena; 0: none
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::array<std::uint64_t, 2> content{};  // hash of all that its batches depend on
  Bytes desk = 0;                          // bytes of the peer desk; 0: other hosts are not asked
  PeerKey peers{};                         // of what is asked for there
  ChainOptions chain{};

  Bytes ring_offset() const { return kBytes + arena; }
  Bytes ring_bytes() const { return (Ring::region_bytes(ring) + 4095) / 4096 * 4096; }
  Bytes desk_offset() const { return ring_offset() + ring_bytes(); }
  Bytes region_bytes() const { return desk_offset() + desk; }
};

// Of the shared arena with these samples; roster 0: there is one host.
ObjectKey arena_key(const PeerKey& peers);
// Of the board of the disks that hold these samples.
ObjectKey disks_key(const PeerKey& peers);

// kInvalid: the chain's text is too long. REQUIRES: kBytes of zeroed memory.
Status write_card(const StreamCard& card, std::span<std::byte> into);
// kInvalid: it is none, or does not fit into `region` bytes.
Result<StreamCard> read_card(std::span<const std::byte> from, Bytes region);

}  // namespace foreload
