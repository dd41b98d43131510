#include "probe/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/machine.h"
#include "base/text.h"
#include "commands.h"
#include "foreload/source.h"
#include "number_flag.h"
#include "probe/doctor_dataset.h"
#include "probe/doctor_machine.h"
#include "probe/doctor_place.h"
#include "probe/doctor_python.h"
#include "progress.h"
#include "signals.h"
#include "token_flags.h"

namespace foreload {

namespace {

using namespace std::chrono_literals;

constexpr const char* kExamples =
    "  foreload doctor                        this machine\n"
    "  foreload doctor imagenet/train         and a dataset\n"
    "  foreload doctor imagenet/train --disk /ssd/cache\n"
    "                                         and a folder for its disk cache\n"
    "  foreload doctor --all                  also what is in order\n\n"
    "Nothing is changed. Exit code 1: something will break the run.";

constexpr Duration kPythonPatience = 20s;

struct DoctorOptions {
  SourceOptions source;
  TokenFlags tokens;
  std::string disk;
  std::string python;
  std::uint64_t seed = 0;
  std::uint64_t most = 2000;
  bool all = false;
};

void append(Findings& to, Findings more) {
  std::ranges::move(more, std::back_inserter(to));
}

// Nothing is written: an index that is not there is built in memory.
Result<std::unique_ptr<Source>> open_dataset(const DoctorOptions& options, std::vector<std::string>& warnings) {
  SourceOptions source = options.source;
  FORELOAD_TRY(options.tokens.apply(source));
  source.keep_index = false;
  source.warn = [&](const std::string& text) { warnings.push_back(text); };
  Progress progress("indexing", "samples", 0);
  source.progress = [&](std::uint64_t done, std::uint64_t total) {
    progress.set_total(total);
    progress.set(done);
  };
  const EndAtOnce while_opening;
  return open_source(source);
}

std::string user_cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/foreload";
  const char* const home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache/foreload" : std::string();
}

// The folder, or the nearest one above it that there is.
Result<PlaceView> look_at_nearest(std::string path) {
  for (;;) {
    auto view = look_at_place(path);
    if (view || view.error().code != Code::kNotFound || path.size() <= 1) return view;
    path = std::filesystem::path(path).parent_path().string();
  }
}

Finding examine_index_place(const DoctorOptions& options, const PlaceView* dataset) {
  const bool is_chosen = !options.source.index_folder.empty();
  const std::string folder = is_chosen ? options.source.index_folder : user_cache_folder();
  const auto user = folder.empty() ? Result<PlaceView>(Error{}) : look_at_nearest(folder);
  return judge_index_place(!is_chosen && dataset != nullptr && dataset->may_write, user && user->may_write, folder);
}

Finding examine_disk(const std::string& folder, const DatasetShape& shape) {
  namespace fs = std::filesystem;
  const auto parent = fs::absolute(folder).lexically_normal().parent_path().string();
  auto place = look_at_place(folder);
  if (!place) place = look_at_place(parent);  // the folder itself is made, not those above
  if (!place) {
    return {Severity::kBreaks, "disk cache", fmt::format("{}: {}", folder, place.error().message), "the run refuses it",
            fmt::format("mkdir -p {}", parent)};
  }
  place->path = folder;
  return judge_disk_cache(*place, shape);
}

Result<Findings> examine_samples(const DoctorOptions& options, const Source& source) {
  Progress progress("looking at", "samples", 0);
  auto checks = check_samples(source, {.most = options.most,
                                       .seed = options.seed,
                                       .threads = usable_cores(),
                                       .stop = [] { return caught_signal() != 0; },
                                       .progress = [&](std::uint64_t done) { progress.set(done); }});
  if (!checks) return std::move(checks).error();
  return judge_samples(*checks, source.size());
}

Result<Findings> examine_dataset(const DoctorOptions& options, DatasetNeeds& needs, DatasetShape& shape) {
  std::vector<std::string> warnings;
  const auto source = open_dataset(options, warnings);
  if (!source) {
    return Findings{{Severity::kBreaks, "dataset", source.error().message, "there is nothing to load",
                     "name a folder, tar files or a URL that exists"}};
  }
  const DatasetView view = look_at_index(**source);
  needs = {
      .kept_open = view.files_kept_open, .bytes = view.bytes, .largest = view.largest, .is_remote = view.is_remote};
  shape = {.samples = view.samples, .bytes = view.bytes, .in_shards = view.in_shards};
  Findings findings = judge_index(view);
  for (const std::string& warning : warnings) {
    findings.push_back({Severity::kNote, "index", warning, "it is said at every start", "as it says"});
  }
  if (view.samples > 0 && !view.is_remote) {
    const auto place = look_at_place((*source)->locate(0).root, (*source)->uri());
    if (place) findings.push_back(judge_dataset_place(*place, shape));
    findings.push_back(examine_index_place(options, place ? &*place : nullptr));
  } else if (view.is_remote) {
    findings.push_back(examine_index_place(options, nullptr));
  }
  FORELOAD_ASSIGN(Findings samples, examine_samples(options, **source));
  append(findings, std::move(samples));
  return findings;
}

Finding examine_peers() {
#if defined(FORELOAD_HAS_GRPC) && defined(FORELOAD_HAS_MPI)
  return {Severity::kOk, "peers", "gRPC and MPI are built in"};
#elif defined(FORELOAD_HAS_GRPC)
  return {Severity::kOk, "peers", "gRPC is built in, MPI is not"};
#elif defined(FORELOAD_HAS_MPI)
  return {Severity::kNote, "peers", "MPI is built in, gRPC is not", "--peers works under mpirun only",
          "build where libgrpc++-dev is installed"};
#else
  return {Severity::kNote, "peers", "neither gRPC nor MPI is built in", "hosts can not share their caches (--peers)",
          "build where libgrpc++-dev or libopenmpi-dev is installed"};
#endif
}

Findings examine_python(const DoctorOptions& options) {
  const char* const search_path = std::getenv("PATH");
  const std::vector<std::string> paths = options.python.empty()
                                             ? find_interpreters(search_path != nullptr ? search_path : "")
                                             : std::vector<std::string>{options.python};
  std::vector<PythonView> views;
  for (const std::string& path : paths) views.push_back(look_at_python(path, kPythonPatience));
  return judge_python(views, FORELOAD_VERSION);
}

void print(const Findings& findings, bool all, const Output& output) {
  std::vector<std::string> fine;
  for (const Finding& one : findings) {
    if (one.severity == Severity::kOk && !all) {
      if (std::ranges::find(fine, one.what) == fine.end()) fine.push_back(one.what);
      continue;
    }
    output.line("{:<7} {}: {}", severity_name(one.severity), one.what, one.found);
    if (one.severity == Severity::kOk) continue;
    if (!one.cost.empty()) output.line("{:<7}   {}", "", one.cost);
    if (!one.mend.empty()) output.line("{:<7}   → {}", "", one.mend);
  }
  if (!fine.empty()) output.line("{:<7} {}", "ok", fmt::join(fine, ", "));
}

Json findings_json(const Findings& findings) {
  Json list = Json::array();
  for (const Finding& one : findings) {
    list.push_back({{"severity", severity_name(one.severity)},
                    {"what", one.what},
                    {"found", one.found},
                    {"cost", one.cost.empty() ? Json() : Json(one.cost)},
                    {"mend", one.mend.empty() ? Json() : Json(one.mend)}});
  }
  return list;
}

Result<Json> run(const DoctorOptions& options, const Output& output) {
  DatasetNeeds needs;
  DatasetShape shape;
  Findings dataset;
  if (!options.source.datasets.empty()) {
    FORELOAD_ASSIGN(dataset, examine_dataset(options, needs, shape));
  }
  Findings findings = judge_machine(look_at_machine(), needs);
  append(findings, std::move(dataset));
  if (!options.disk.empty()) findings.push_back(examine_disk(options.disk, shape));
  append(findings, examine_python(options));
  findings.push_back(examine_peers());
  if (caught_signal() != 0) return Error{Code::kCancelled, "stopped by a signal"};
  sort_by_severity(findings);
  print(findings, options.all, output);
  const auto broken = std::ranges::count(findings, Severity::kBreaks, &Finding::severity);
  const Json report{{"breaks", broken}, {"findings", findings_json(findings)}};
  if (broken == 0) return report;
  output.report_now(report);
  return Error{Code::kIo, fmt::format("{} will break the run", counted(static_cast<std::uint64_t>(broken), "finding"))};
}

}  // namespace

Command doctor_command(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = add_command(
      app, "doctor", "Checks the machine, a dataset and Python; names what will hurt, what it costs and how to mend it",
      kExamples);
  command->add_option("dataset", options->source.datasets,
                      "Folder, tar, list of tars or URL; several are concatenated");
  command->add_option("--disk", options->disk, "Folder that is to keep samples (run --disk)")->check(refuse_empty);
  command->add_option("--index-folder", options->source.index_folder,
                      "Where the index is kept; default: beside the dataset");
  command->add_option("--python", options->python, "Interpreter to look at; default: the first in PATH, and Debian's")
      ->check(refuse_empty);
  add_number(*command, "--samples", options->most, "How many samples are looked into", {.least = 1, .most = 1'000'000});
  add_number(*command, "--seed", options->seed, "Which ones");
  options->tokens.declare(*command);
  command->add_flag("--all", options->all, "Show also what is in order");
  return {command, [options](const Output& output) { return run(*options, output); }};
}

}  // namespace foreload
