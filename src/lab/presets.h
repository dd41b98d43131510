// Presets: published set-ups as clusters, and the figures that were published for them. Plain data, with its source and
// with what is not known. reproduce() simulates a figure, and what Foreload would have given in its place.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/cluster_run.h"

namespace foreload {

enum class Measure {
  kSpeedUp,  // of `system` over `baseline`, in the last epoch
  kMisses,   // share of samples that `system` reads from storage in the last epoch
  kReads,    // how often `baseline` reads from storage what `system` reads there once, in the last epoch
  kRate,     // samples per second of `system` in the last epoch
};
const char* measure_name(Measure measure);  // "speed-up", …

// How much of a figure is prediction.
enum class Basis {
  kComplete,  // all that it depends on was published
  kAssumed,   // something had to be assumed; it was chosen before looking at this figure
  kFitted,    // something was chosen so that this figure comes out: it says nothing by itself
};
const char* basis_name(Basis basis);  // "complete", …

struct PresetRow {
  const char* what;
  double published;
  double published_to = 0;  // where a range was published; 0: one number
  Measure measure = Measure::kSpeedUp;
  const char* system = "foreload";
  const char* baseline = "naive";
  const char* changes = "";        // "hosts=32 cache=8GB", on top of the preset's
  const char* baseline_also = "";  // the same, for the baseline only
  Basis basis = Basis::kAssumed;
};

struct Preset {
  const char* name;
  const char* source;
  const char* says;
  const char* setup;    // "hosts=16 learners=4 …"
  const char* assumed;  // what is not published, and what stands in its place
  std::span<const PresetRow> rows;
};

std::span<const Preset> presets();
// kNotFound lists the names.
Result<const Preset*> find_preset(std::string_view name);
// The cluster of a preset, or of one of its rows. kInvalid: a word of `changes` is no parameter.
Result<ClusterSetup> preset_setup(const Preset& preset, std::string_view changes = {});

struct Reproduced {
  double simulated = 0;
  double foreload = 0;  // the same figure with Foreload in the place of `system`
  bool ahead = true;    // Foreload's last epoch takes no longer than that of `system`
  double seconds = 0;   // of the system's last epoch
  double foreload_seconds = 0;
};
// How far the simulated figure is from the published one, or from the nearer end of its range: 1 is a match.
double ratio_to_published(const PresetRow& row, double simulated);
Result<Reproduced> reproduce(const Preset& preset, const PresetRow& row, const RunOptions& options = {});

}  // namespace foreload
