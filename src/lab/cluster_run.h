// ClusterRun: a job on a cluster under a virtual clock. Feeders load batches ahead of their learners, over storage and
// links that all share; learners wait for a batch, compute, and meet at a barrier after every step. Batches, not
// samples, are what moves: the bytes of one, by where they come from, are a flow each (docs/design/simulate.md). The
// same setup gives the same run, to the last event. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.h"
#include "foreload/types.h"
#include "lab/cluster.h"
#include "lab/event_queue.h"
#include "lab/faults.h"
#include "lab/flows.h"
#include "lab/loading_system.h"

namespace foreload {

struct EpochReport {
  Epoch epoch = 0;
  double seconds = 0;
  std::uint64_t samples = 0;  // of all jobs
  double samples_per_s = 0;
  std::array<Amount, kPlaces> from{};
  Amount for_others{};  // of what came from storage: to be sent on
  Amount sent{};        // over the network; as much is received
  // Shares of the learners' time; they add up to 1.
  double busy = 0;
  double fetch_stall = 0;
  double prep_stall = 0;
  double sync = 0;  // the barrier and the reduction
  // Of waits for a batch, in seconds.
  double wait_median = 0;
  double wait_p99 = 0;
  double wait_longest = 0;
  std::uint64_t order_hash = 0;  // as of `foreload run --hash`, over all learners
  std::uint64_t positions = 0;

  const Amount& at(KeptAt place) const { return from[static_cast<std::size_t>(place)]; }
};

struct RunReport {
  std::vector<EpochReport> epochs;
  double seconds = 0;
  std::uint64_t events = 0;
  std::uint64_t record_hash = 0;  // over every event: the same run has the same

  // Of the last epoch: caches are as full as they get.
  const EpochReport& steady() const { return epochs.back(); }
};

struct RunOptions {
  std::vector<Fault> faults{};
  std::function<bool()> stop{};  // asked now and then; true: end early
};

class ClusterRun {
 public:
  // REQUIRES: check_cluster() of the scene's setup; the system is fresh. All must outlive it.
  ClusterRun(const SystemScene& scene, LoadingSystem& system, RunOptions options = {});
  // Once. kCancelled: it was stopped.
  Result<RunReport> run();

 private:
  enum class What : std::uint8_t { kRelease, kStartFlow, kPart, kPrepared, kStepped, kFault, kMended };
  struct Happening {
    What what{};
    KeptAt place{};
    std::uint16_t turn = 0;    // of the feeder: what was meant before a restart is void
    std::uint32_t who = 0;     // feeder, group or fault
    std::uint64_t number = 0;  // step, over all epochs
  };
  // A batch on its way.
  struct Pending {
    unsigned parts = 0;  // that have not come yet
    Time begun{};        // its first bytes
    Time fetched{};
    bool is_prepared = false;
  };
  struct Lane {
    std::deque<std::uint64_t> steps;  // the first one moves, the others wait
  };
  struct Feeder {
    HostIndex host = 0;
    std::uint32_t group = 0;
    std::uint64_t learners = 1;
    double cores = 1;
    double depth = 1;           // reads at once
    std::uint64_t asked = 0;    // steps
    std::uint64_t current = 0;  // the step that it computes or waits for
    bool is_hungry = false;
    std::uint16_t turn = 0;
    Time hungry_since{};
    Time prep_free{};
    Lane storage;
    Lane peers;
    std::deque<Pending> pending;  // steps current … asked - 1
  };
  // Learners that wait for each other: those of one job.
  struct Group {
    std::uint64_t feeders = 0;
    std::uint64_t arrived = 0;
    std::uint64_t step = 0;
    bool is_released = false;  // its learners may take the step
    Time epoch_began{};
  };
  struct Planned {
    StepLoads loads;
    Time peers_ready{};      // when the last byte has left its sender
    std::uint64_t left = 0;  // feeders that have not finished it
  };
  // Sums of an epoch, in seconds of learners.
  struct Tally {
    double busy = 0;
    double fetch = 0;
    double prep = 0;
    std::vector<float> waits;
  };
  struct HostState {
    Time memory_free{};
    Time disk_free{};
    Time link_free{};  // outgoing
    double slow = 1;
    double link_slow = 1;
    bool is_dead = false;
    unsigned deaths = 0;  // that have not ended
  };

  void make_feeders();
  static std::vector<double> capacities(const ClusterSetup& setup);
  void handle(const Happening& happening);
  void release(std::uint32_t group);
  void ask(std::uint32_t feeder);
  void ask_step(std::uint32_t feeder, std::uint64_t number);
  const Load& load_of(const Feeder& feeder, std::uint64_t number);
  Planned& planned(std::uint64_t number);
  void send(Planned& plan);
  void start_flow(std::uint32_t feeder, KeptAt place);
  void flow_ended(std::uint32_t feeder, KeptAt place);
  void part_came(std::uint32_t feeder, std::uint64_t number);
  void prepare(std::uint32_t feeder, std::uint64_t number);
  void feed(std::uint32_t feeder);
  void stepped(std::uint32_t feeder, std::uint64_t number);
  void step_done(Group& group, std::uint32_t index);
  void sum_up(Epoch epoch);
  double compute_seconds(const Feeder& feeder, std::uint64_t number, std::uint64_t samples, double& sum) const;
  double reduce_seconds() const;
  Time serve(Time& free, Bytes bytes, double rate) const;
  void fault(const Fault& fault, bool begins);
  void kill(HostIndex host);
  void revive(HostIndex host);
  void record(const Happening& happening);

  Lane& lane(Feeder& feeder, KeptAt place) { return place == KeptAt::kStorage ? feeder.storage : feeder.peers; }
  Pending& pending(Feeder& feeder, std::uint64_t number) { return feeder.pending[number - feeder.current]; }
  Time now() const { return events_.now(); }

  const SystemScene& scene_;
  const ClusterSetup& setup_;
  LoadingSystem& system_;
  RunOptions options_;
  SystemTraits traits_;
  std::uint64_t per_epoch_;
  std::uint64_t total_;  // steps
  std::uint64_t ahead_;
  EventQueue<Happening> events_;
  Flows flows_;
  Reach reach_;
  std::vector<Feeder> feeders_;
  std::vector<Group> groups_;
  std::vector<HostState> hosts_;
  std::deque<Planned> plans_;  // from first_plan_ on
  std::uint64_t first_plan_ = 0;
  std::vector<double> straggling_;  // by host
  std::uint64_t groups_done_ = 0;
  double storage_slow_ = 1;
  std::vector<Tally> tallies_;  // by epoch
  RunReport report_;
  Hasher hash_;
};

// Makes the system and runs it. kNoMemory: its tables would not fit into what a simulation may take.
Result<RunReport> simulate(const SystemScene& scene, const SystemKind& kind, RunOptions options = {});
// The scene of a setup: lengths by its own figures. kInvalid: check_cluster().
Result<SystemScene> make_scene(const ClusterSetup& setup);

}  // namespace foreload
