// What a run adds up to, and runs from their setup.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "lab/cluster_run.h"

namespace foreload {
namespace {

constexpr Bytes kMostTables = 1'600'000'000;  // of one system

}  // namespace

void ClusterRun::sum_up(Epoch number) {
  EpochReport& epoch = report_.epochs[number];
  Tally& tally = tallies_[number];
  double learners = 0;
  for (const Feeder& feeder : feeders_) learners += static_cast<double>(feeder.learners);
  const double all = epoch.seconds * learners;
  epoch.samples = epoch.positions * (traits_.prepares_once ? setup_.jobs : 1);
  if (epoch.seconds > 0) {
    epoch.samples_per_s = static_cast<double>(epoch.samples) / epoch.seconds;
    epoch.busy = tally.busy / all;
    epoch.fetch_stall = tally.fetch / all;
    epoch.prep_stall = tally.prep / all;
    epoch.sync = std::max(0.0, 1 - epoch.busy - epoch.fetch_stall - epoch.prep_stall);
  }
  if (tally.waits.empty()) return;
  std::ranges::sort(tally.waits);
  const auto at = [&](double share) {
    return tally.waits[static_cast<std::size_t>(share * static_cast<double>(tally.waits.size() - 1))];
  };
  epoch.wait_median = at(0.5);
  epoch.wait_p99 = at(0.99);
  epoch.wait_longest = tally.waits.back();
}

Result<SystemScene> make_scene(const ClusterSetup& setup) {
  FORELOAD_TRY(check_cluster(setup));
  return SystemScene{.setup = setup, .lengths = sample_lengths(setup)};
}

Result<RunReport> simulate(const SystemScene& scene, const SystemKind& kind, RunOptions options) {
  const Bytes tables = kind.bytes(scene.setup);
  if (tables > kMostTables) {
    return Error{
        Code::kNoMemory,
        fmt::format("{}: a table of {} for each of {} would take {}, and a simulation may take {}: fewer hosts "
                    "or samples",
                    kind.name, counted(scene.setup.samples, "sample"), counted(scene.setup.hosts, "host"),
                    format_bytes(tables), format_bytes(kMostTables))};
  }
  const std::unique_ptr<LoadingSystem> system = kind.make(scene);
  ClusterRun run(scene, *system, std::move(options));
  return run.run();
}

}  // namespace foreload
