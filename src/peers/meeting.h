// Meeting: the cards of a job's hosts, until every host's is known, and afterwards for whoever is started again. Cards
// come with hellos (greet) and with answers to one's own (learn); any host that knows a card passes it on. A card that
// was once told does not change: plans over hosts are made from it. No I/O. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "foreload/result.h"
#include "peers/wire.h"
#include "plan/roster.h"

namespace foreload {

class Meeting {
 public:
  // What this host says of itself. REQUIRES: its index is below the count of hosts, at most Roster::kMostHosts. A name
  // with port 0 is completed by served() before anybody is greeted.
  explicit Meeting(Hello own);

  // The server of this host listens there.
  void served(const std::string& address);
  Hello own() const;

  // For the server: a welcome with all cards that are known, one's own first, or a refusal in words.
  HelloAnswer greet(const Hello& hello);
  // What that host answered. kMismatch: it is another host, or knows another card of some host; nothing is learnt then.
  Status learn(HostIndex asked, const HelloAnswer& answer);

  bool complete() const;
  std::vector<std::optional<PeerCard>> cards() const;  // by host
  // Of all cards in order. REQUIRES: complete().
  Result<Roster> roster() const;
  // Returns when all cards are known, or at `until`.
  void wait(Time until) const;

  // What the user has to be told: who was refused, and why; each once.
  std::vector<std::string> take_warnings();

 private:
  struct Known {
    std::optional<PeerCard> card{};
    std::vector<std::uint64_t> nonces{};  // of its hellos, the latest last
  };

  std::string refusal(const Hello& hello) const FORELOAD_REQUIRES(mutex_);  // empty: it is welcome
  // Empty: it is not known, or the same.
  std::string difference(const PeerCard& card) const FORELOAD_REQUIRES(mutex_);
  void add(const PeerCard& card) FORELOAD_REQUIRES(mutex_);
  void note_nonce(const Hello& hello) FORELOAD_REQUIRES(mutex_);
  void warn(std::string what) FORELOAD_REQUIRES(mutex_);

  mutable Mutex mutex_;
  mutable CondVar completed_;
  Hello own_ FORELOAD_GUARDED_BY(mutex_);
  std::vector<Known> hosts_ FORELOAD_GUARDED_BY(mutex_);
  std::size_t missing_ FORELOAD_GUARDED_BY(mutex_);
  std::set<std::string> warned_ FORELOAD_GUARDED_BY(mutex_);
  std::vector<std::string> warnings_ FORELOAD_GUARDED_BY(mutex_);
};

}  // namespace foreload
