// The rows of bench/cluster that need the planner only.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <numbers>
#include <vector>

#include "base/random.h"
#include "cluster_parts.h"
#include "plan/balanced.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSeed = 7;
constexpr std::uint64_t kImageNet = 1'281'167;
constexpr unsigned kRounds = 7;

// About 110 KB with a long tail, as photographs are.
Bytes length_of(SampleId id) {
  const std::uint64_t bits = mix64(id + 1);
  const Bytes usual = 20'000 + (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0x3fff);
  return bits >> 60 == 0 ? 8 * usual : usual;
}

struct Cluster {
  std::uint64_t samples = kImageNet;
  std::uint32_t hosts = 8;
  std::uint32_t learners = 1;   // of each host
  std::uint64_t per_host = 32;  // samples of a global batch
  unsigned held = 100;          // percent of the data
};

Result<BalancedAssignment> plan_cluster(const Cluster& cluster) {
  Bytes bytes = 0;
  Bytes longest = 0;
  for (SampleId id = 0; id < cluster.samples; ++id) {
    bytes += length_of(id);
    longest = std::max(longest, length_of(id));
  }
  const Bytes room = bytes / cluster.hosts * cluster.held / 100 + (cluster.held == 100 ? longest : 0);
  const RosterHost host{.learners = cluster.learners, .memory = room};
  FORELOAD_ASSIGN(Roster roster, Roster::create(std::vector<RosterHost>(cluster.hosts, host)));
  const JobShape shape{
      .samples = cluster.samples, .global_batch = cluster.per_host * cluster.hosts, .world = roster.world()};
  HostPlacement placement = HostPlacement::plan(cluster.samples, kSeed, roster, length_of);
  const Schedule schedule({.samples = cluster.samples, .seed = kSeed});
  return BalancedAssignment(schedule, SliceAssignment(shape), std::move(roster), std::move(placement), length_of);
}

// Processor time per sample of a global batch, in ns: the median over the rounds, each an epoch's steps.
double planning_time(const BalancedAssignment& assignment) {
  BalancedStep step;
  assignment.plan(0, 0, step);
  std::vector<double> times;
  for (Epoch epoch = 1; epoch <= kRounds; ++epoch) {
    const std::clock_t start = std::clock();
    for (std::uint64_t i = 0; i < assignment.slice().batches_per_epoch(); ++i) assignment.plan(epoch, i, step);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    times.push_back(1e9 * seconds / static_cast<double>(assignment.slice().positions_per_epoch()));
  }
  std::ranges::nth_element(times, times.begin() + kRounds / 2);
  return times[kRounds / 2];
}

Status bench_time(BenchReport& report) {
  double worst = 0;
  std::string how = "256 hosts × 4 learners, global batch 32,768, 1,281,167 samples, one core, median of 7 epochs; ";
  for (const unsigned held : {100U, 65U}) {
    FORELOAD_ASSIGN(const BalancedAssignment assignment,
                    plan_cluster({.hosts = 256, .learners = 4, .per_host = 128, .held = held}));
    const double time = planning_time(assignment);
    how += fmt::format("{:.1f} with {} % of the data held{}", time, held, held == 100 ? ", " : "");
    worst = std::max(worst, time);
  }
  report.add("cluster/planning", worst, "ns/sample", 100, false, how);
  return {};
}

struct PeerShares {
  double balanced = 0;
  double slice = 0;
};

// Which share of an epoch's bytes is consumed by another host than their home.
PeerShares peer_shares(const BalancedAssignment& assignment) {
  BalancedStep step;
  Bytes moved = 0;
  Bytes moved_by_slice = 0;
  Bytes all = 0;
  for (std::uint64_t i = 0; i < assignment.slice().batches_per_epoch(); ++i) {
    assignment.plan(1, i, step);
    moved += step.total().received_bytes;
    for (std::size_t offset = 0; offset < step.samples().size(); ++offset) {
      const SampleId id = step.samples()[offset];
      const Position position = i * assignment.slice().shape().global_batch + offset;
      const HostIndex host = assignment.roster().host_of(assignment.slice().rank_of(position));
      all += length_of(id);
      moved_by_slice += assignment.placement().home(id).host() != host ? length_of(id) : 0;
    }
  }
  return {static_cast<double>(moved) / static_cast<double>(all),
          static_cast<double>(moved_by_slice) / static_cast<double>(all)};
}

Status bench_shares(BenchReport& report) {
  for (const std::uint64_t per_host : {32U, 64U, 128U}) {
    FORELOAD_ASSIGN(const BalancedAssignment assignment, plan_cluster({.samples = 200'000, .per_host = per_host}));
    const PeerShares shares = peer_shares(assignment);
    const double formula = 1 / std::sqrt(2 * std::numbers::pi * static_cast<double>(per_host));
    report.add(fmt::format("cluster/planned_peer_share_m{}", per_host), shares.balanced, "share",
               std::round(1.15e4 * formula) / 1e4, false,
               fmt::format("bytes of an epoch that move with balanced, {} samples per host and step, 8 hosts that hold "
                           "all; 1/sqrt(2·pi·m) is {:.4f}",
                           per_host, formula));
    report.add(fmt::format("cluster/planned_slice_off_formula_m{}", per_host), std::abs(shares.slice / (7.0 / 8) - 1),
               "share", 0.02, false,
               fmt::format("with slice: {:.4f} of the bytes move; 1 - 1/p is 0.875", shares.slice));
  }
  return {};
}

}  // namespace

Status bench_planning(BenchReport& report) {
  FORELOAD_TRY(bench_time(report));
  return bench_shares(report);
}

}  // namespace foreload
