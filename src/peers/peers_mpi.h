// MpiPeers: peers over MPI one-sided reads. A host's arenas are exposed as memory that others read by themselves; whose
// samples are read has no part in it but to let MPI look now and then. Serves memory only and trusts the launcher: an
// MPI job has no strangers. The host index is MPI's rank. When one process of the job dies, its launcher ends them all.
// MPI runs in a thread of its own. What comes is copied and compared with its hash by the thread that waits, in wait():
// so nothing is written to a want's memory after its end. (Between processes of one machine nothing has to be copied: a
// read has ended as soon as it is begun.) A host that does not answer by a deadline is left alone until the slot of a
// sample of it can be read. Memory: 4 MiB for every host that is read from, 68 MiB at
// most. One object per process and life: MPI can not be started twice.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/thread.h"
#include "peers/mpi_desk.h"
#include "peers/peers.h"
#include "policy/peer_health.h"

namespace foreload {

class MpiPeers final : public PeerTransport {
 public:
  // Waits for all processes of the job.
  static Result<std::unique_ptr<MpiPeers>> open();
  // Waits five seconds at most for all others to end, too; then the launcher ends the job when this process does.
  ~MpiPeers() override;

  HostIndex host() const { return host_; }  // of this process
  HostIndex hosts() const { return hosts_; }

  // Everybody's bytes, by host; at most 1 KiB each. Blocks. REQUIRES: all hosts exchange as often.
  // kIo: somebody did not by `until`; kCancelled: stop(). There is no exchange afterwards.
  Result<std::vector<std::string>> exchange(
      const std::string& mine, Time until, const std::function<bool()>& stop = [] { return false; });

  // Lets others read a SharedArena's region, or its first part: what lies behind is absent to them. The memory must
  // stay mapped until it is withdrawn, or this object ends. A network that pins what it reads takes all of it.
  Status expose(const PeerKey& key, std::span<const std::byte> memory, std::uint64_t samples);
  // False: somebody did not stop reading it by `until`. Withdraw it again, or keep it.
  bool withdraw(const PeerKey& key, Time until);

  void fetch(HostIndex host, const PeerKey& key, std::span<const PeerWant> wants, Time deadline) override;
  void wait(std::vector<PeerEnd>& ends, Time until) override;
  void wake() override;
  std::vector<std::string> take_warnings() override { return desk_->take_warnings(); }

  // Notes to other hosts that the network has not taken: some per host at most. Blocks for a moment.
  std::size_t unsent();

  // Runs something in MPI's thread and waits for it: for whoever else in this process calls MPI.
  void in_mpi(const std::function<void()>& body) { (void)desk_->call(body); }

 private:
  class Worker;
  struct Pending {
    HostIndex host = 0;
    std::span<std::byte> into;
    std::uint64_t token = 0;
    Time begun{};
    Time deadline{};
    bool probe = false;  // nobody's want
  };

  MpiPeers() = default;
  void probe(HostIndex host, const PeerKey& key, SampleId id);
  void note(const Pending& want, PeerResult result);
  void land(const MpiLanding& landing, std::vector<PeerEnd>& ends);
  PeerResult result_of(const Pending& want, const MpiLanding& landing);
  void expire(std::vector<PeerEnd>& ends);
  bool cancel(std::uint64_t serial, HostIndex host);
  void warn_once(HostIndex host, const char* what);

  HostIndex host_ = 0;
  HostIndex hosts_ = 0;
  std::vector<bool> neighbours_;  // by host
  std::unique_ptr<MpiDesk> desk_ = std::make_unique<MpiDesk>();
  std::unique_ptr<Worker> worker_;
  std::unordered_map<std::uint64_t, Pending> pending_;  // by serial
  Time next_deadline_ = Time::max();                    // none of them is earlier
  std::uint64_t serials_ = 0;
  std::vector<MpiLanding> landings_;
  std::vector<MpiAsk> asks_;
  std::vector<PeerHealth> healths_;  // by host
  std::vector<PeerEnd> unasked_;     // of hosts that are left alone
  std::set<std::pair<HostIndex, std::string>> warned_;
  std::atomic<bool> woken_{false};
};

}  // namespace foreload
