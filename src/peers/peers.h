// Peers: how an agent gets samples from other hosts' memory, and what it has for them. One interface over two
// transports, gRPC and MPI; only an agent has one. A fetch may fail in any way without harm: whoever asked goes to the
// source. Bytes that come are compared with the hash that their home keeps of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "foreload/types.h"
#include "plan/roster.h"
#include "tier/lease.h"
#include "tier/peer_crop.h"

namespace foreload {

// A sample as a peer is asked for it. An agent has no index of the dataset, so the length is said.
struct PeerItem {
  SampleId id = 0;
  Bytes length = 0;
  PeerCrop crop{};  // where that is wanted, the JPEG of it may come in the sample's place

  bool operator==(const PeerItem&) const = default;
};

// A sample that is wanted from its home.
struct PeerWant {
  SampleId id = 0;
  std::span<std::byte> into{};  // of its length; valid until its PeerEnd was taken
  std::uint64_t token = 0;      // the caller's
  PeerCrop crop{};              // as of PeerItem; a transport may ignore it
};

enum class PeerResult : std::uint8_t {
  kHere,         // the bytes are in `into`, and are the sample's, or those of the JPEG that was cut out of it
  kAbsent,       // its home does not have it
  kRefused,      // the peer means another dataset, plan or roster
  kWrong,        // the bytes do not have their hash, or the answer breaks the rules
  kUnreachable,  // no answer by the deadline, or no connection
};

struct PeerEnd {
  std::uint64_t token = 0;
  PeerResult result = PeerResult::kUnreachable;
  Bytes cut = 0;  // kHere: the length of what was cut out; 0: all of the sample is there
};

// How wants of one peer have ended so far.
struct PeerCounts {
  std::string address{};  // empty: it is never asked
  std::uint64_t samples = 0;
  Bytes bytes = 0;  // that came for these samples
  std::uint64_t absent = 0;
  std::uint64_t refused = 0;
  std::uint64_t wrong = 0;
  std::uint64_t unreachable = 0;

  bool operator==(const PeerCounts&) const = default;
};

// What this host has for others. Any thread; never blocks.
class PeerShelf {
 public:
  struct Taken {
    enum class Kind : std::uint8_t {
      kHere,
      kAbsent,  // and is not expected
      kLater,   // it is on its way: ask again in a moment
    };
    Kind kind = Kind::kAbsent;
    Lease lease{};           // kHere: valid
    std::uint64_t hash = 0;  // kHere: xxh3 of its bytes
  };

  virtual ~PeerShelf() = default;
  // Does this host hold samples of that dataset, by that roster?
  virtual bool knows(const PeerKey& key) const = 0;
  // A request for these has come: what is at home here and is not there yet is to be read meanwhile.
  virtual void expect(const PeerKey& key, std::span<const PeerItem> items) = 0;
  // A key that is not known, or no longer: kAbsent.
  virtual Taken take(const PeerKey& key, const PeerItem& item) = 0;
};

class PeerTransport {
 public:
  virtual ~PeerTransport() = default;  // ends all fetches

  // Asks for samples that are needed together. Every want has one PeerEnd, by `deadline` or a little later. Never
  // blocks. REQUIRES: one thread fetches and waits.
  virtual void fetch(HostIndex host, const PeerKey& key, std::span<const PeerWant> wants, Time deadline) = 0;
  // Appends what ended; waits for the first until `until` or wake().
  virtual void wait(std::vector<PeerEnd>& ends, Time until) = 0;
  virtual void wake() = 0;  // any thread

  // What the user has to be told, each cause once per peer: "peer host:port: …".
  virtual std::vector<std::string> take_warnings() = 0;
};

}  // namespace foreload
