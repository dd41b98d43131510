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
  // The job's hosts, as people call them, and which of them this one is.
  struct Hosts {
    std::vector<std::string> names{};
    HostIndex self = 0;
  };
  // Inventory and transport must outlive it.
  static Result<std::unique_ptr<Office>> open(const Inventory& inventory, PeerTransport& transport, Hosts hosts);
  ~Office();  // ends all that is under way; the transport has nothing of it any more

  // What the user has to be told, from the transport and from here: each cause once per host.
  std::vector<std::string> take_warnings() FORELOAD_EXCLUDES(mutex_);

 private:
  struct Pending {
    std::shared_ptr<AskingStream> stream;
    PeerDesk::Asked asked;
    Time since{};
  };
  // How a host does as a peer, beside what the transport knows.
  struct Record {
    Time refused_since{};  // 0: it refused nothing since it last gave something
    bool warned = false;
    Duration rest{};  // the last one's length; 0: it was not slow since it last gave something
    Time rest_until{};
  };

  Office(const Inventory& inventory, PeerTransport& transport, Hosts hosts)
      : inventory_(inventory), transport_(transport), hosts_(std::move(hosts)), records_(hosts_.names.size()) {}
  void listen();
  void run();
  void take_requests();
  void take_ends(Time until);
  void note(const Pending& pending, PeerResult result, Time now) FORELOAD_EXCLUDES(mutex_);
  void note_refusal(HostIndex host, Time now) FORELOAD_EXCLUDES(mutex_);

  const Inventory& inventory_;
  PeerTransport& transport_;
  Hosts hosts_;
  std::unordered_map<std::uint64_t, Pending> pending_;  // by token
  std::uint64_t next_token_ = 1;
  std::vector<PeerEnd> ends_;
  std::vector<Record> records_;  // by host
  Mutex mutex_;
  std::vector<std::string> warnings_ FORELOAD_GUARDED_BY(mutex_);
  std::atomic<bool> stopping_{false};
  std::vector<Thread> threads_;
};

}  // namespace foreload
