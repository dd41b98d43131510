// PeerDesk: where a stream asks its host's agent for samples that other hosts have. Requests and the room for their
// bytes stand in memory that both map; the stream takes the bytes out, so an agent that is stopped or slow in the
// middle of one keeps nothing but a piece of that room, until it goes on or dies. One thread asks, one
// of any member answers. Neither side trusts what the other writes. Never blocks.
//
//   [ entries: kEntries × 64 bytes ][ room ]
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/claim_word.h"
#include "foreload/types.h"
#include "tier/peer_crop.h"

namespace foreload {

class PeerDesk {
 public:
  static constexpr unsigned kEntries = 256;
  static constexpr Duration kPatience = std::chrono::seconds(1);      // with an agent, or a peer
  static constexpr Duration kLongestRest = std::chrono::seconds(30);  // from one that does not answer in time

  static Bytes region_bytes(Bytes room);
  // REQUIRES: zeroed memory of region_bytes(), which outlives this, 64-byte aligned.
  explicit PeerDesk(std::span<std::byte> memory) : memory_(memory) {}

  // Asking. -------------------------------------------------------------------------------------
  // Before anything else. `is_alive` tells of any member.
  void begin(std::function<bool(MemberId)> is_alive);
  // Samples up to this length can be asked for.
  Bytes longest() const;
  bool has_room(Bytes length) const { return place_for(length).has_value(); }
  // False: there is no room for it now. `crop`: where that is wanted, the picture's home may send only what it needs.
  // REQUIRES: no other request for it is open; length ≤ longest().
  bool ask(SampleId id, std::uint32_t host, Bytes length, Time now, const PeerCrop& crop = {});
  struct End {
    SampleId id = 0;
    std::optional<std::span<const std::byte>> bytes{};  // nothing: they have to come from elsewhere
    bool is_cut = false;                                // they are the JPEG of the crop
    Duration took{};
  };
  // Calls `use` for whatever has ended, or has taken too long; its bytes are gone afterwards.
  void take(Time now, const std::function<void(const End&)>& use);
  void give_up();  // nobody waits any more
  unsigned open() const { return open_; }
  // Something was not answered in time: for a while, longer each time, there is no use in asking.
  bool rests() const { return rests_; }
  Time next_deadline() const;  // of the requests that are open; Time::max(): there are none

  // Answering. ----------------------------------------------------------------------------------
  struct Asked {
    unsigned index = 0;
    std::uint64_t word = 0;
    SampleId id = 0;
    std::uint32_t host = 0;
    std::span<std::byte> into{};
    PeerCrop crop{};
  };
  // A request that nobody has taken, the oldest first.
  std::optional<Asked> claim(MemberId self);
  // `cut`: only the JPEG of the crop came, which has this length; 0: all of the sample did.
  // REQUIRES: claimed by this member; `into` is not touched any more.
  void end(const Asked& asked, bool here, Bytes cut = 0);

 private:
  struct Entry;
  // What the asking side knows of an entry: it does not read it back. Entries, and the room of their bytes, are used in
  // turn.
  struct Open {
    SampleId id = 0;
    std::uint64_t start = 0;  // in the room, counted on over its end
    Bytes length = 0;
    Time since{};
    bool waited_for = false;
    bool crops = false;
  };

  Entry& entry(unsigned index) const;
  std::optional<std::uint64_t> place_for(Bytes length) const;
  std::span<std::byte> room() const { return memory_.subspan(entries_bytes()); }
  static Bytes entries_bytes();
  bool look_at(std::uint64_t number, Time now, const std::function<void(const End&)>& use);
  void note(bool in_time, Time now);

  std::span<std::byte> memory_;
  std::function<bool(MemberId)> is_alive_;
  std::array<Open, kEntries> opens_{};
  std::uint64_t first_ = 0;  // the oldest request whose entry is in use
  std::uint64_t next_ = 0;   // the next one's number
  std::uint64_t end_ = 0;    // of the room that is in use, counted on over its end
  unsigned open_ = 0;        // that somebody waits for
  bool rests_ = false;
  Duration rest_{};  // the last one's length; 0: since then it was answered
  Time rest_until_{};
  unsigned cursor_ = 0;  // of claim()
};

}  // namespace foreload
