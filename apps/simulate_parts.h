// The parts of `foreload simulate`: what it is told, its report as JSON, as text and as a page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "lab/cluster_run.h"
#include "lab/presets.h"
#include "lab/prices.h"
#include "lab/sweep.h"

namespace foreload {

// One system on one cluster.
struct Simulated {
  const SystemKind* system = nullptr;
  RunReport report;
};

struct SweepDone {
  const SystemKind* system = nullptr;
  Sweep sweep;
  std::vector<SweepPoint> points;
  Curve curve;
};

// --- apps/simulate_json.cc
Json setup_json(const ClusterSetup& setup);
Json simulated_json(const Simulated& run, const ClusterSetup& setup, const std::optional<Prices>& prices);
// As `analyze` has its curves, with bytes and costs of every point beside them.
Json sweep_json(const SweepDone& sweep, const ClusterSetup& setup, const std::optional<Prices>& prices);
// Per epoch, of all hosts; nothing without prices.
std::optional<double> epoch_cost(const ClusterSetup& setup, const EpochReport& epoch,
                                 const std::optional<Prices>& prices);

// --- apps/simulate_presets.cc
void list_presets(const Output& output);
Json presets_json();
// Simulates all rows of a preset, prints them, and answers with them.
Result<Json> run_preset(const Preset& preset, const Output& output);
// kCancelled after a signal.
RunOptions run_until_signal();

// --- apps/simulate_page.cc
std::string simulation_page(const Json& simulation);

}  // namespace foreload
