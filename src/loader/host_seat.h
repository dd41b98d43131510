// HostSeat: a loader's place in a host: the homes of samples that all members share, the memory of its own stream,
// which workers of any member may work on, and this process's workers. A thread of it wakes the fetcher when other
// processes have something to tell, and reserves memory for homes before they are used.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "foreload/loader.h"
#include "host/member.h"
#include "host/stream_card.h"
#include "host/workshop.h"
#include "loader/company.h"
#include "loader/job.h"
#include "loader/seams.h"
#include "loader/setup.h"
#include "loader/standby.h"
#include "plan/stream.h"
#include "tier/arena.h"
#include "tier/disk_seat.h"
#include "tier/shared_arena.h"
#include "tier/tier_stack.h"

namespace foreload {

// Options that do not go together with a host.
Status check_host(const LoaderOptions& options);

class HostSeat {
 public:
  // What the loader knows of its stream.
  struct Needs {
    const LoaderOptions& options;
    const Source& source;
    const Chain& chain;
    const ChainOptions& chain_options;
    const Stream& stream;
    const JobPlan& job;  // lives as long as the seat
    unsigned threads;
    const Seams& seams;
  };
  static Result<std::unique_ptr<HostSeat>> open(const Needs& needs);
  ~HostSeat();

  const SizedPlan& sized() const { return sized_; }
  Bytes budget() const { return member_->control().budget(); }
  SharedArena* homes() const { return arena_.get(); }  // null: nothing is cached
  // Of this learner, among the disks that hosts share; null: they share none.
  const DiskSeat* disk_seat() const { return disk_seat_ ? &*disk_seat_ : nullptr; }
  Company& company() { return *company_; }
  Bytes homes_capacity() const;
  // Of the stream, once.
  std::unique_ptr<Arena> take_arena() { return std::move(own_arena_); }
  std::shared_ptr<Ring> take_ring() { return std::move(own_ring_); }
  // A desk at another job's ring, until it has gone.
  void watch(const std::shared_ptr<LeaseDesk>& desk) FORELOAD_EXCLUDES(mutex_);
  // From now on. Both must live until stop().
  Status serve(TierStack& tiers, Ring& ring);
  void stop();
  unsigned workers() const { return workshop_->workers(); }  // of this process
  std::optional<std::string> take_warning() FORELOAD_EXCLUDES(mutex_);

 private:
  HostSeat(std::shared_ptr<Member> member, const JobPlan& job) : member_(std::move(member)), job_(job) {}
  Status plan(const Needs& needs);
  Status open_homes(const Needs& needs);
  void check_promise(Bytes room) FORELOAD_EXCLUDES(mutex_);
  Status open_disks(const Needs& needs);
  Bytes board_bytes(std::uint64_t samples) const;
  void sit(TierStack& tiers) FORELOAD_EXCLUDES(mutex_);
  Status open_stream(const Needs& needs);
  void ask_peers(TierStack& tiers);
  bool agent_lives();
  void run(TierStack& tiers, Ring& ring);
  void grow() FORELOAD_EXCLUDES(mutex_);
  bool look_at_desks() FORELOAD_EXCLUDES(mutex_);
  void warn(std::string text) FORELOAD_EXCLUDES(mutex_);
  Bytes promised() const;

  std::shared_ptr<Member> member_;
  const JobPlan& job_;
  std::shared_ptr<Workshop> workshop_;
  std::optional<Standby> standby_;  // nothing: the workers have begun
  SizedPlan sized_{};
  Bytes desk_bytes_ = 0;  // 0: other hosts are not asked
  Bytes plan_bytes_ = 0;  // of a job over several hosts
  Bytes share_ = 0;       // of the budget, for this stream and what belongs to it
  std::shared_ptr<SharedObject> homes_;
  std::unique_ptr<SharedArena> arena_;
  std::shared_ptr<SharedObject> disks_;
  std::optional<DiskSeat> disk_seat_;
  ArenaOptions arena_options_{};
  StreamCard card_{};
  std::shared_ptr<SharedObject> stream_;
  std::optional<Company> company_;
  std::unique_ptr<Arena> own_arena_;
  std::shared_ptr<Ring> own_ring_;
  std::optional<PeerDesk> desk_;  // nothing: other hosts are not asked
  struct {
    bool lives = true;
    Time look_again{};
  } agent_;  // of this host, when it was last looked at
  std::string host_;
  Mutex mutex_;
  std::deque<std::string> warnings_ FORELOAD_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<LeaseDesk>> desks_ FORELOAD_GUARDED_BY(mutex_);
  std::atomic<bool> stopping_{false};
  bool refused_ = false;  // the machine or the budget gave no more for homes
  Ring* ring_ = nullptr;
  std::vector<Thread> threads_;
};

}  // namespace foreload
