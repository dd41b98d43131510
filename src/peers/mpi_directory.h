// MpiDirectory: which arenas the hosts of an MPI job have told this one about, and which of them are being read.
// Knows nothing of MPI. One thread. What hosts say is bounded before it is used.
#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "peers/peers.h"
#include "tier/shared_arena.h"

namespace foreload {

// What hosts tell each other. From one host to another notes arrive in the order in which they were sent.
struct MpiNote {
  enum Kind : std::uint64_t {
    kExposed,   // an arena may be read
    kLeaving,   // it may not any more: say when you have stopped
    kReleased,  // nobody here reads it any more
    kHurry,     // I wait for you: look more often
    kSaid,      // what I say in the exchange of this serial: `bytes` of text follow the note
    kSayAgain,  // what you said in it has not come
    kBye,       // I leave when all do
  };

  std::uint64_t kind = kHurry;
  std::uint64_t serial = 0;  // of the arena, among those of its host; of the exchange
  PeerKey key{};
  std::uint64_t address = 0;  // in the process of its host
  std::uint64_t bytes = 0;
  std::uint64_t samples = 0;
};

class MpiDirectory {
 public:
  static constexpr std::size_t kMostArenas = 1024;  // of one host

  struct Arena {
    MpiNote note;
    unsigned readers = 0;
    bool leaving = false;

    bool has_slot(SampleId id) const;
    // kHere: the bytes that the slot means can be read. kAbsent also when they lie behind what is exposed.
    PeerResult judge(const SlotCopy& slot, Bytes length) const;
  };

  explicit MpiDirectory(HostIndex hosts) : hosts_(hosts) {}

  void exposed(HostIndex host, const MpiNote& note);
  // True: nobody reads it; otherwise release() tells when.
  bool leaving(HostIndex host, std::uint64_t serial);
  // Null: the host has none for this key. It stays until its release().
  Arena* acquire(HostIndex host, const PeerKey& key);
  // True: it leaves, and this was its last reader. The arena is gone then.
  bool release(HostIndex host, Arena* arena);

 private:
  std::vector<std::list<Arena>> hosts_;
};

}  // namespace foreload
