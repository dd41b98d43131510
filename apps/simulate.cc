// `foreload simulate`: clusters and systems under a virtual clock.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "base/files.h"
#include "base/text.h"
#include "base/write_file.h"
#include "commands.h"
#include "foreload/source.h"
#include "help_layout.h"
#include "number_flag.h"
#include "probe/planned_job.h"
#include "progress.h"
#include "report/number.h"
#include "signals.h"
#include "simulate_parts.h"

namespace foreload {
namespace {

constexpr const char* kExamples =
    "  foreload simulate --hosts 64 --learners 4 --accelerator 755 --prep 300 \\\n"
    "      --cores 40 --samples 1281167 --storage-rate 5GB/s --cache 100GB\n"
    "  foreload simulate --cluster mine.toml --system all\n"
    "      mine.toml:  hosts = 64              # name = value, one to a line\n"
    "                  storage-rate = 5GB/s\n"
    "  foreload simulate --cluster mine.toml --sweep hosts=1..512 --report page.html\n"
    "  foreload simulate --cluster mine.toml --fault dead-host:3@10s-25s --faults 5\n"
    "  foreload simulate data/train --hosts 8        lengths of a real dataset\n"
    "  foreload simulate --list                      published set-ups\n"
    "  foreload simulate --preset coordl-misses      one of them; --all: all";

constexpr Bytes kLongestFile = 64_KiB;
constexpr double kPatience = 60;  // seconds, that are not asked about

struct SimulateOptions {
  std::vector<std::string> datasets;
  std::string cluster;
  std::map<std::string, std::string> parameters;
  std::vector<std::string> systems;
  std::vector<std::string> sweeps;
  std::vector<std::string> presets;
  std::vector<std::string> faults;
  std::uint64_t random_faults = 0;
  std::string budget;
  std::string chain;
  std::string prices;
  std::string report;
  bool all = false;
  bool list = false;
  bool yes = false;
};

Result<std::vector<const SystemKind*>> chosen_systems(const SimulateOptions& options) {
  std::vector<const SystemKind*> chosen;
  for (const std::string& name : options.systems) {
    if (name == "all") {
      for (const SystemKind& kind : system_kinds()) chosen.push_back(&kind);
      continue;
    }
    FORELOAD_ASSIGN(const SystemKind* const kind, find_system(name));
    chosen.push_back(kind);
  }
  if (chosen.empty()) {
    for (const char* const name : {"none", "naive", "foreload"}) chosen.push_back(*find_system(name));
  }
  return chosen;
}

// What a loader with this budget would keep, to the sample.
Status take_budget(const SimulateOptions& options, SystemScene& scene) {
  FORELOAD_ASSIGN(const Bytes budget, parse_bytes(options.budget));
  LoaderOptions loading;
  loading.dataset = options.datasets;
  loading.batch = scene.setup.batch;
  loading.seed = scene.setup.seed;
  loading.memory = budget;
  loading.workers = static_cast<unsigned>(scene.setup.cores);
  loading.source.keep_index = false;
  if (!options.chain.empty()) {
    FORELOAD_ASSIGN(loading.chain, parse_chain(options.chain));
  }
  FORELOAD_ASSIGN(const PlannedJob job, PlannedJob::open(loading));
  scene.footprints.clear();
  for (SampleId id = 0; id < job.source().size(); ++id) {
    const Bytes footprint = job.footprint(id);
    scene.footprints.push_back(static_cast<std::uint32_t>(footprint == 0 ? ~0u : std::min<Bytes>(footprint, ~0u)));
  }
  scene.setup.cache = job.room();
  scene.setup.memory = std::max(scene.setup.memory, budget);
  return {};
}

// The dataset's lengths in the place of the setup's.
Status take_lengths(const SimulateOptions& options, SystemScene& scene) {
  const EndAtOnce while_opening;
  SourceOptions source;
  source.datasets = options.datasets;
  source.keep_index = false;
  FORELOAD_ASSIGN(const auto opened, open_source(source));
  if (opened->size() == 0) return Error{Code::kInvalid, "the dataset has no samples"};
  scene.lengths.clear();
  double sum = 0;
  for (SampleId id = 0; id < opened->size(); ++id) {
    scene.lengths.push_back(static_cast<std::uint32_t>(std::min<Bytes>(opened->length(id), 0xffffffff)));
    sum += scene.lengths.back();
  }
  scene.setup.samples = opened->size();
  scene.setup.sample_bytes = std::max(1.0, sum / static_cast<double>(opened->size()));
  if (!options.budget.empty()) FORELOAD_TRY(take_budget(options, scene));
  return check_cluster(scene.setup);
}

Result<ClusterSetup> read_setup(const SimulateOptions& options) {
  ClusterSetup setup;
  if (!options.cluster.empty()) {
    FORELOAD_ASSIGN(const std::string text, read_whole_file(options.cluster, kLongestFile));
    FORELOAD_TRY(read_cluster(setup, text, options.cluster));
  }
  for (const auto& [name, text] : options.parameters) FORELOAD_TRY(set_parameter(setup, name, text));
  return setup;
}

Result<std::optional<Prices>> read_prices(const std::string& path) {
  if (path.empty()) return std::optional<Prices>();
  FORELOAD_ASSIGN(const std::string text, read_whole_file(path, kLongestFile));
  FORELOAD_ASSIGN(Prices prices, parse_prices(text, path));
  return std::optional(std::move(prices));
}

class Simulating {
 public:
  Simulating(const SimulateOptions& options, const Output& output) : options_(options), output_(output) {}
  Result<Json> run();

 private:
  Status open();
  Status ask_patience() const;
  Status compare(Json& report);
  Status sweep(Json& report);
  Result<SweepDone> sweep_one(const Sweep& sweep, const SystemKind& kind) const;
  Result<std::vector<Fault>> faults() const;
  void print(const Simulated& run) const;

  const SimulateOptions& options_;
  const Output& output_;
  SystemScene scene_;
  std::vector<const SystemKind*> systems_;
  std::vector<Sweep> sweeps_;
  std::optional<Prices> prices_;
};

Status Simulating::open() {
  FORELOAD_ASSIGN(const ClusterSetup setup, read_setup(options_));
  FORELOAD_ASSIGN(systems_, chosen_systems(options_));
  FORELOAD_ASSIGN(prices_, read_prices(options_.prices));
  for (const std::string& text : options_.sweeps) {
    FORELOAD_ASSIGN(Sweep sweep, parse_sweep(text));
    sweeps_.push_back(std::move(sweep));
  }
  if (options_.datasets.empty() && !options_.budget.empty())
    return Error{Code::kInvalid, "--budget says what a loader of a dataset keeps: name the dataset, or give --cache"};
  scene_.setup = setup;
  if (options_.datasets.empty()) return check_cluster(setup);
  return take_lengths(options_, scene_);
}

// Says how long it will take before it takes that long.
Status Simulating::ask_patience() const {
  double seconds = 0;
  const auto count = static_cast<double>(systems_.size());
  if (sweeps_.empty()) seconds += count * estimate_seconds(scene_.setup);
  for (const Sweep& sweep : sweeps_) {
    for (const double value : sweep.values) {
      ClusterSetup setup = scene_.setup;
      FORELOAD_TRY(set_value(setup, *sweep.parameter, value));
      FORELOAD_TRY(check_cluster(setup));
      seconds += count * estimate_seconds(setup);
    }
  }
  if (seconds <= kPatience || options_.yes) return {};
  const std::string time =
      seconds < 7200 ? fmt::format("{:.0f} minutes", seconds / 60) : fmt::format("{:.0f} hours", seconds / 3600);
  return Error{Code::kInvalid,
               fmt::format("this takes about {} on one core: add --yes, or simulate fewer systems, values, epochs or "
                           "samples",
                           time)};
}

Result<std::vector<Fault>> Simulating::faults() const {
  std::vector<Fault> made;
  for (const std::string& text : options_.faults) {
    FORELOAD_ASSIGN(const Fault fault, parse_fault(text, scene_.setup));
    made.push_back(fault);
  }
  if (options_.random_faults == 0) return made;
  // Within the time that the run takes without them.
  FORELOAD_ASSIGN(const RunReport calm, simulate(scene_, *systems_.back(), run_until_signal()));
  for (const Fault& fault : random_faults(scene_.setup, options_.random_faults, calm.seconds)) made.push_back(fault);
  return made;
}

void Simulating::print(const Simulated& run) const {
  const EpochReport& last = run.report.steady();
  output_.line(
      "{:<20} {:>9} samples/s  epoch {:>9}  busy {:>5}  storage {:>5}  prep {:>5}  sync {:>5}  read {:>10}  sent "
      "{:>10}",
      run.system->name, short_number(last.samples_per_s), format_duration(Duration(std::llround(last.seconds * 1e9))),
      percent(last.busy), percent(last.fetch_stall), percent(last.prep_stall), percent(last.sync),
      format_bytes(last.at(KeptAt::kStorage).bytes), format_bytes(last.sent.bytes));
  if (const auto cost = epoch_cost(scene_.setup, last, prices_))
    output_.line("{:<20} {:.2f} {} per epoch", "", *cost, prices_->currency);
}

Status Simulating::compare(Json& report) {
  FORELOAD_ASSIGN(const std::vector<Fault> broken, faults());
  Progress progress("simulating", "systems", systems_.size());
  report["systems"] = Json::array();
  for (std::size_t i = 0; i < systems_.size(); ++i) {
    progress.set(i, systems_[i]->name);
    RunOptions options = run_until_signal();
    options.faults = broken;
    auto made = simulate(scene_, *systems_[i], std::move(options));
    if (!made && made.error().code == Code::kNoMemory && systems_.size() > 1) {
      output_.warn(made.error().message);
      continue;
    }
    if (!made) return std::move(made).error();
    const Simulated one{systems_[i], *std::move(made)};
    print(one);
    report["systems"].push_back(simulated_json(one, scene_.setup, prices_));
  }
  return {};
}

Result<SweepDone> Simulating::sweep_one(const Sweep& sweep, const SystemKind& kind) const {
  SweepDone done{&kind, sweep, {}, {}};
  Progress progress(fmt::format("{} by {}", kind.name, sweep.parameter->name), "points", sweep.values.size());
  for (const double value : sweep.values) {
    progress.set(done.points.size());
    ClusterSetup setup = scene_.setup;
    FORELOAD_TRY(set_value(setup, *sweep.parameter, value));
    FORELOAD_ASSIGN(SystemScene scene, make_scene(setup));
    if (!options_.datasets.empty()) scene.lengths = scene_.lengths;
    FORELOAD_ASSIGN(RunReport report, simulate(scene, kind, run_until_signal()));
    done.points.push_back({value, std::move(report)});
    const EpochReport& epoch = done.points.back().report.steady();
    output_.line("{:<20} {:>20} = {:<12} {:>9} samples/s  epoch {:>9}  busy {:>5}", kind.name, sweep.parameter->name,
                 text_of(*sweep.parameter, value), short_number(epoch.samples_per_s),
                 format_duration(Duration(std::llround(epoch.seconds * 1e9))), percent(epoch.busy));
  }
  done.curve = sweep_curve(sweep, done.points, value_of(scene_.setup, *sweep.parameter));
  if (done.curve.knee) output_.line("{:<20} knee: {}", kind.name, done.curve.knee->says);
  return done;
}

Status Simulating::sweep(Json& report) {
  report["what_if"] = Json::array();
  for (const Sweep& one : sweeps_) {
    if (!options_.datasets.empty() && (std::string_view(one.parameter->name) == "samples"))
      return Error{Code::kInvalid, "the samples are those of the dataset: leave out one of them"};
    for (const SystemKind* const kind : systems_) {
      if (std::string_view(kind->name) == "none" && options_.systems.empty()) continue;
      FORELOAD_ASSIGN(const SweepDone done, sweep_one(one, *kind));
      report["what_if"].push_back(sweep_json(done, scene_.setup, prices_));
    }
  }
  return {};
}

Result<Json> Simulating::run() {
  FORELOAD_TRY(open());
  FORELOAD_TRY(ask_patience());
  if (scene_.lengths.empty()) scene_.lengths = sample_lengths(scene_.setup);
  Json report{{"setup", setup_json(scene_.setup)}};
  if (sweeps_.empty()) {
    FORELOAD_TRY(compare(report));
  } else {
    FORELOAD_TRY(sweep(report));
  }
  return report;
}

Result<Json> run_presets(const SimulateOptions& options, const Output& output) {
  std::vector<const Preset*> chosen;
  for (const Preset& preset : presets()) {
    if (options.all) chosen.push_back(&preset);
  }
  for (const std::string& name : options.presets) {
    FORELOAD_ASSIGN(const Preset* const preset, find_preset(name));
    if (!options.all) chosen.push_back(preset);
  }
  Json list = Json::array();
  for (const Preset* const preset : chosen) {
    FORELOAD_ASSIGN(Json done, run_preset(*preset, output));
    list.push_back(std::move(done));
  }
  return Json{{"presets", std::move(list)}};
}

Result<Json> run(const SimulateOptions& options, const Output& output) {
  if (options.list) {
    list_presets(output);
    return Json{{"presets", presets_json()}};
  }
  const bool published = options.all || !options.presets.empty();
  if (published && (!options.parameters.empty() || !options.cluster.empty() || !options.sweeps.empty())) {
    return Error{Code::kInvalid,
                 "a preset is as it was published: leave out parameters, --cluster and --sweep (--list shows its "
                 "parameters, to start from)"};
  }
  auto report = published ? run_presets(options, output) : Simulating(options, output).run();
  if (!report || options.report.empty()) return report;
  const std::string page = simulation_page(*report);
  FORELOAD_TRY(replace_file(options.report, std::as_bytes(std::span(page))));
  output.line("The whole report: {}", options.report);
  return report;
}

std::string systems_text() {
  std::string text = "Systems:";
  for (const SystemKind& kind : system_kinds()) text += fmt::format("\n  {:<21}{}", kind.name, kind.says);
  return text;
}

void declare_parameters(CLI::App& command, SimulateOptions& options) {
  const ClusterSetup usual;
  for (const Parameter& parameter : parameters()) {
    const auto take = [&options, name = std::string(parameter.name)](const std::string& text) {
      options.parameters[name] = text;
    };
    const std::string says =
        fmt::format("{}; default: {}", parameter.says, text_of(parameter, value_of(usual, parameter)));
    command.add_option_function<std::string>(fmt::format("--{}", parameter.name), take, says)
        ->group("The cluster and the job");
  }
}

}  // namespace

Command simulate_command(CLI::App& app) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = add_command(app, "simulate",
                                  "Simulates clusters that you do not have, with the plans and policies of the runtime",
                                  kExamples + std::string("\n\n") + systems_text());
  command->add_option("URI", options->datasets, "A dataset whose samples' lengths are taken; nothing of it is read");
  command
      ->add_option("--budget", options->budget,
                   "With a dataset: keep what a loader with this --memory keeps; in the place of --cache")
      ->check(refuse_empty);
  command
      ->add_option("--chain", options->chain, "With --budget: the loader's transforms, whose batches take memory, too")
      ->check(refuse_empty);
  command->add_option("--cluster", options->cluster, "File with parameters, name = value")->check(refuse_empty);
  command->add_option("--system", options->systems, "Systems to compare, or all; default: none, naive, foreload");
  command->add_option("--sweep", options->sweeps, "Vary a parameter: hosts=1..512, cache=0,8GB,16GB; finds the knee");
  command->add_option("--preset", options->presets, "Published set-ups instead: their figures and the simulated ones");
  command->add_flag("--all", options->all, "All presets");
  command->add_flag("--list", options->list, "List the presets");
  command->add_option("--fault", options->faults,
                      "dead-host:3@10s-25s, dead-link, slow-host, slow-link:0@5s-8s*4, slow-storage@5s-8s*10");
  add_number(*command, "--faults", options->random_faults, "So many more, chosen by the seed", {.most = 10'000});
  command->add_option("--prices", options->prices, "File of prices, as of analyze: what an epoch costs")
      ->check(refuse_empty);
  command->add_option("--report", options->report, "Write everything to this file, as a web page")->check(refuse_empty);
  command->add_flag("--yes", options->yes, "Also if it takes long");
  declare_parameters(*command, *options);
  return {command, [options](const Output& output) { return run(*options, output); }};
}

}  // namespace foreload
