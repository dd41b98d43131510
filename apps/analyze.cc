// `foreload analyze`: measures the machine and the dataset, predicts what a training job would wait for, and says what
// to change. With --record: explains a run that was recorded.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "accelerator.h"
#include "agent_peers.h"
#include "analysis.h"
#include "analysis_page.h"
#include "analyze_check.h"
#include "analyze_words.h"
#include "base/clock.h"
#include "base/event_record.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/text.h"
#include "base/write_file.h"
#include "commands.h"
#include "explain.h"
#include "help_layout.h"
#include "lab/run_story.h"
#include "loader_flags.h"
#include "probe/planned_job.h"
#include "progress.h"
#include "signals.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr const char* kExamples =
    "  foreload analyze data/train --accelerator resnet50-a100 --memory 8GiB\n"
    "  foreload analyze data/train --accelerator 1200 --report report.html\n"
    "  foreload analyze data/train --accelerator 1200 --check     is it true?\n"
    "  foreload analyze s3://bucket/train/ --accelerator 1200 --prices prices.txt\n"
    "      prices.txt:  currency = EUR     core_hour = 0.04   (one to a line)\n"
    "                   gb_hour = 0.005    gpu_hour = 2.50\n"
    "  foreload analyze --record run.events --chrome trace.json   a recorded run\n"
    "foreload.measure_step() in Python finds the rate of your own model.";

constexpr double kBusyMachine = 0.75;  // load of a core
constexpr Bytes kLongestPrices = 64_KiB;
// Together they end within a minute and 2 GB.
constexpr Duration kMeasureTime = 35s;
constexpr Duration kFormsTime = 15s;
constexpr Bytes kMeasureBytes = 1'700'000'000;
constexpr Bytes kFormsBytes = 250'000'000;

struct AnalyzeOptions {
  std::string accelerator = "none";
  std::string network;
  std::string prices;
  std::string report;
  std::vector<std::string> records;
  std::string chrome;
  bool check = false;
};

std::string cpu_name() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos)
      return std::string(trimmed(std::string_view(line).substr(colon + 1)));
  }
  return "";
}

Bytes physical_memory() {
  return static_cast<Bytes>(::sysconf(_SC_PHYS_PAGES)) * static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
}

Result<std::optional<Prices>> read_prices(const std::string& path) {
  if (path.empty()) return std::optional<Prices>();
  FORELOAD_ASSIGN(const std::string text, read_whole_file(path, kLongestPrices));
  FORELOAD_ASSIGN(Prices prices, parse_prices(text, path));
  return std::optional(std::move(prices));
}

// A rate, a preset, or the record of a run: what its learner took while it did not wait. 0: "none".
Result<double> accelerator_rate(const std::string& text) {
  Result<Accelerator> given = Accelerator::parse(text);
  if (given) return given->samples_per_second();
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(text, ignored)) {
    return Error{given.error().code, given.error().message + ", or the record of a run (foreload run --record)"};
  }
  FORELOAD_ASSIGN(const std::vector<Event> events, read_event_record(text));
  const auto rate = events.empty() ? std::nullopt : learner_rate(story_of(events));
  if (!rate) return Error{Code::kInvalid, fmt::format("{} has too few batches to tell the accelerator's rate", text)};
  return *rate;
}

// "1.2GB/s", in bytes per second; 0: nothing was given.
Result<double> parse_network(std::string_view text) {
  if (text.empty()) return 0.0;
  std::string_view amount = text;
  if (amount.ends_with("/s")) amount.remove_suffix(2);
  const auto bytes = parse_bytes(amount);
  if (!bytes || *bytes == 0) {
    return Error{Code::kInvalid,
                 fmt::format("--network {}: no rate; bytes that a host gets from others per second, such as 1GB/s",
                             text.substr(0, 40))};
  }
  return static_cast<double>(*bytes);
}

// Whether a file can be made there: better known before a minute of measuring than after it.
Status check_report(const std::string& path) {
  if (path.empty()) return {};
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string place = folder.empty() ? "." : folder.string();
  if (::access(place.c_str(), W_OK | X_OK) != 0) return errno_error("cannot write the report into " + place, errno);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return Error{Code::kInvalid, fmt::format("--report {} is a folder: name a file", path)};
  return {};
}

FormCost form_cost(const FormRun& run, std::uint64_t samples) {
  if (!run.known() || samples == 0) return {};
  const auto count = static_cast<double>(samples);
  const double stored = static_cast<double>(run.stored) / count;
  return {run.cpu_seconds / count, stored, run.read_share};
}

FormCosts form_costs(const std::optional<Forms>& forms) {
  if (!forms) return {};
  return {form_cost(forms->raw, forms->samples), form_cost(forms->record, forms->samples),
          form_cost(forms->crop_addressable, forms->samples)};
}

// What no figure can say. `load`: processes that wanted a core before anything was measured.
void note_assumptions(const LoaderOptions& options, double load, Measured& measured) {
  const unsigned cores = usable_cores();
  if (load > kBusyMachine * cores) {
    measured.missing.insert(measured.missing.begin(),
                            {"a quiet machine", fmt::format("load {:.1f} on {}: the figures are of what others left",
                                                            load, counted(cores, "core"))});
  }
  if (options.echo > 1 || !options.weights.empty()) {
    measured.missing.push_back({"the order",
                                "the model takes every sample once an epoch; with weights or echoes less is "
                                "fetched than it says"});
  }
}

class Analyzing {
 public:
  Analyzing(const AnalyzeOptions& options, LoaderOptions loading, const Output& output)
      : options_(options), loading_(std::move(loading)), output_(output) {}

  Result<Json> run(const CLI::App& command);

 private:
  Status open();
  MeasureOptions how(Progress& progress, double from, double to) const;
  Status measure_all();
  Status measure_forms(Progress& progress);
  Status conclude(const CLI::App& command);
  Status write_report(const Json& report) const;

  AnalyzeOptions options_;
  LoaderOptions loading_;
  const Output& output_;
  std::optional<Prices> prices_;
  std::optional<PlannedJob> job_;
  double accelerator_ = 0;  // samples per second; 0: not known
  double network_ = 0;      // bytes per second; 0: not given
  Analysis found_;
};

// What is wrong is told before anything is measured.
Status Analyzing::open() {
  FORELOAD_ASSIGN(accelerator_, accelerator_rate(options_.accelerator));
  FORELOAD_ASSIGN(network_, parse_network(options_.network));
  FORELOAD_ASSIGN(prices_, read_prices(options_.prices));
  FORELOAD_TRY(check_report(options_.report));
  Progress progress("indexing", "samples", 0);
  loading_.source.progress = [&](std::uint64_t done, std::uint64_t total) {
    progress.set_total(total);
    progress.set(done);
  };
  {
    const EndAtOnce while_opening;
    FORELOAD_ASSIGN(job_, PlannedJob::open(loading_));
  }
  loading_.source.progress = {};
  loading_.source.trust_index = true;  // it was looked at a moment ago
  return {};
}

MeasureOptions Analyzing::how(Progress& progress, double from, double to) const {
  MeasureOptions how;
  how.accelerator = accelerator_;
  how.network = network_;
  how.stop = [] { return caught_signal() != 0; };
  how.progress = [&progress, from, to](const std::string& stage, double share) {
    progress.set(static_cast<std::uint64_t>(100 * (from + (to - from) * share)), stage);
  };
  return how;
}

Status Analyzing::measure_all() {
  Progress progress("measuring", "", 100);
  const Bytes free = available_memory();
  double load = 0;
  if (::getloadavg(&load, 1) != 1) load = 0;
  found_.setup = job_->setup(free);
  const bool images = found_.setup.form == Form::kRaw || found_.setup.form == Form::kRecord;
  MeasureOptions first = how(progress, 0, images ? 0.7 : 1);
  first.time = kMeasureTime;
  first.most_bytes = kMeasureBytes;
  if (!loading_.peers.empty()) {
    auto rate = open_peer_rate(loading_.peers, loading_.credentials);
    first.peers =
        rate.ok() ? *rate : MeasurePeers([why = rate.error()](Bytes, Duration) { return Result<double>(why); });
  }
  FORELOAD_ASSIGN(found_.measured, measure(loading_, first));
  note_assumptions(loading_, load, found_.measured);
  found_.bytes_read = found_.measured.bytes_read;
  if (images) return measure_forms(progress);
  found_.measured.missing.push_back({"raw against record", found_.setup.form == Form::kArrays
                                                               ? "samples are no images, so converting changes little"
                                                               : "the dataset is converted already"});
  return {};
}

Status Analyzing::measure_forms(Progress& progress) {
  MeasureOptions second = how(progress, 0.7, 1);
  second.time = kFormsTime;
  second.most_bytes = kFormsBytes;
  second.storage = best_storage(found_.measured.storage).value;
  Result<Forms> forms = compare_forms(loading_, second);
  if (!forms && forms.error().code == Code::kCancelled) return std::move(forms).error();
  if (!forms) {
    found_.measured.missing.push_back({"raw against record", forms.error().message});
    return {};
  }
  found_.bytes_read += forms->bytes + forms->raw.bytes + forms->record.bytes + forms->crop_addressable.bytes;
  for (auto& missing : forms->missing) found_.measured.missing.push_back(missing);
  found_.forms = std::move(*forms);
  return {};
}

Status Analyzing::conclude(const CLI::App& command) {
  const Model model(found_.measured, found_.setup, form_costs(found_.forms));
  found_.later = model.predict(found_.setup);
  found_.first = model.predict(found_.setup, Epochs::kFirst);
  found_.curves = curves(model);
  found_.choices = choices(model);
  JobText words = words_of(command, *job_);
  for (Setting& flag : words.flags) {
    if (flag.name == "--accelerator" && accelerator_ > 0) flag.value = fmt::format("{:.6g}", accelerator_);
  }
  found_.remedies = remedies(model, words);
  if (prices_) {
    const Budget budget = [this](Bytes kept) { return job_->machine_budget_for(kept); };
    found_.prices = {*prices_, cost_of(model, *prices_, found_.setup, budget), cheapest(model, *prices_, budget)};
  }
  if (!options_.check) return {};
  FORELOAD_ASSIGN(found_.check, check_model(*job_, model));
  return {};
}

Status Analyzing::write_report(const Json& report) const {
  if (options_.report.empty()) return {};
  const std::string page = analysis_page(report);
  return replace_file(options_.report, std::as_bytes(std::span(page)));
}

Result<Json> Analyzing::run(const CLI::App& command) {
  const Time start = now();
  FORELOAD_TRY(open());
  FORELOAD_TRY(measure_all());
  found_.uri = job_->source().uri();
  found_.fingerprint = job_->source().fingerprint();
  found_.accelerator = options_.accelerator;
  found_.chain = chain_text(job_->chain());
  found_.cpu = cpu_name();
  found_.machine_memory = physical_memory();
  found_.budget = job_->budget();
  FORELOAD_TRY(conclude(command));
  found_.seconds = seconds(now() - start);
  const Json report = to_json(found_);
  FORELOAD_TRY(write_report(report));
  print_summary(found_, output_);
  if (!options_.report.empty()) output_.line("The whole report: {}", options_.report);
  return report;
}

Result<Json> run_analyze(const AnalyzeOptions& options, const LoaderFlags& flags, const CLI::App& command,
                         const Output& output) {
  if (!options.records.empty()) {
    const CLI::Option* uri = command.get_option("URI");
    return explain_record({options.records, options.chrome, uri->results()}, output);
  }
  if (command.get_option("URI")->empty())
    return Error{Code::kInvalid, "URI is required, or --record FILE (see foreload analyze --help)"};
  if (!options.chrome.empty())
    return Error{Code::kInvalid, "--chrome writes the timeline of a recorded run: give --record FILE, too"};
  FORELOAD_ASSIGN(LoaderOptions loading, flags.options());
  loading.warn = [&](const std::string& text) { output.warn(text); };
  return Analyzing(options, std::move(loading), output).run(command);
}

}  // namespace

Command analyze_command(CLI::App& app) {
  CLI::App* command = add_command(
      app, "analyze", "Measures storage, cache and prep, predicts what a job would wait for, and says what to change",
      kExamples + std::string("\n\n") + wrapped("Accelerators (samples/s): " + accelerator_rates(), kHelpColumns));
  auto options = std::make_shared<AnalyzeOptions>();
  auto flags = std::make_shared<LoaderFlags>(*command);
  command->get_option("URI")->required(false);
  command->remove_option(command->get_option("--record"));  // here it is a run that was recorded
  command
      ->add_option("--accelerator", options->accelerator,
                   "What the job computes with: samples/s of one, \"none\", one of the presets below, or the record of "
                   "a run (run --record): what its learner took")
      ->capture_default_str();
  command
      ->add_option("--network", options->network,
                   "What a host gets from the others per second, such as 1GB/s: without it, nothing is predicted of "
                   "hosts that share their caches")
      ->check(refuse_empty);
  command
      ->add_option("--prices", options->prices,
                   "File of prices: find the cheapest setup that keeps the accelerator 95 % busy")
      ->check(refuse_empty);
  command->add_flag("--check", options->check,
                    "Also run the loader, as it is and over slow storage, and compare with the predictions");
  command->add_option("--report", options->report, "Write everything to this file, as a web page")->check(refuse_empty);
  command
      ->add_option("--record", options->records,
                   "Explain recorded runs (foreload run --record) instead; several are the learners of one job")
      ->check(refuse_empty);
  command->add_option("--chrome", options->chrome, "With --record: write the timeline for chrome://tracing, Perfetto")
      ->check(refuse_empty);
  return {command,
          [options, flags, command](const Output& output) { return run_analyze(*options, *flags, *command, output); }};
}

}  // namespace foreload
