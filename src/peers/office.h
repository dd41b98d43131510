// Office: an agent's work for the trainers of its host. What they ask for at their desks is fetched from the hosts that
// have it, a request per stream and host, and written to where they wait for it. Two threads: one wakes the other when
// something is asked for.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "peers/inventory.h"
#include "peers/peers.h"

namespace foreload {

class Office {
 public:
  // `hosts` are their names, for people. Inventory and transport must outlive it.
  static Result<std::unique_ptr<Office>> open(const Inventory& inventory, PeerTransport& transport,
                                              std::vector<std::string> hosts);
  ~Office();  // ends all that is under way; the transport has nothing of it any more

  // What the user has to be told, from the transport and from here: each cause once per host.
  std::vector<std::string> take_warnings() FORELOAD_EXCLUDES(mutex_);

 private:
  struct Pending {
    std::shared_ptr<AskingStream> stream;
    PeerDesk::Asked asked;
  };
  struct Refusals {
    Time since{};  // 0: it refused nothing since it last gave something
    bool warned = false;
  };

  Office(const Inventory& inventory, PeerTransport& transport, std::vector<std::string> hosts)
      : inventory_(inventory), transport_(transport), hosts_(std::move(hosts)), refusals_(hosts_.size()) {}
  void listen();
  void run();
  void take_requests();
  void take_ends(Time until);
  void note(HostIndex host, PeerResult result, Time now) FORELOAD_EXCLUDES(mutex_);

  const Inventory& inventory_;
  PeerTransport& transport_;
  std::vector<std::string> hosts_;
  std::unordered_map<std::uint64_t, Pending> pending_;  // by token
  std::uint64_t next_token_ = 1;
  std::vector<PeerEnd> ends_;
  std::vector<Refusals> refusals_;  // by host
  Mutex mutex_;
  std::vector<std::string> warnings_ FORELOAD_GUARDED_BY(mutex_);
  std::atomic<bool> stopping_{false};
  std::vector<Thread> threads_;
};

}  // namespace foreload
