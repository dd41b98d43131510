// bench/analyze: what `foreload analyze` predicts against what the loader then does, and what an analysis takes.
//
//   analyze [--json] [--work DIR] [--only PART…]        parts: raw, converted, command
//
// Raw files and their records are measured once each, over emulated storage of a middling rate, and everything else is
// predicted from that: cache sizes, other storage rates, a slower accelerator, fewer threads. Rates are shares of what
// prep does on this machine, so that storage, prep and accelerator each limit some of the points. The dataset is made
// in a fresh folder below DIR and removed at the end.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/machine.h"
#include "lab/model.h"
#include "parts.h"
#include "probe/analysis.h"
#include "probe/child.h"
#include "probe/generated_dataset.h"
#include "probe/loader_rates.h"
#include "probe/planned_job.h"
#include "probe/storage_set.h"
#include "record/convert.h"

namespace foreload {
namespace {

constexpr std::uint64_t kImages = 1200;
constexpr double kGoal = 0.07;
// Storage, of what prep needs when nothing is cached; the accelerator, of prep.
constexpr double kMiddling = 0.35;
constexpr double kSlow = 0.2;
constexpr double kFast = 0.6;
constexpr double kSlowAccelerator = 0.4;
constexpr double kFastAccelerator = 20;

struct AnalyzeBench {
  std::string program;  // foreload; empty: it was not built
  std::string work;
  std::string raw;
  std::string records;
  BenchReport& report;
};

struct Point {
  const char* name;
  double cached = 0;
  double storage = kMiddling;
  double accelerator = kFastAccelerator;
  unsigned threads = 2;
};

constexpr Point kPoints[] = {
    {"cache_0", 0},
    {"cache_25", 0.25},
    {"cache_50", 0.5},
    {"cache_75", 0.75},
    {"cache_100", 1},
    {"cache_25_slow_storage", 0.25, kSlow},
    {"cache_25_fast_storage", 0.25, kFast},
    {"cache_50_slow_accelerator", 0.5, kMiddling, kSlowAccelerator},
    {"cache_100_slow_accelerator", 1, kMiddling, kSlowAccelerator},
    {"cache_100_1_thread", 1, kMiddling, kFastAccelerator, 1},
    {"cache_0_1_thread", 0, kMiddling, kFastAccelerator, 1},
};

LoaderOptions options_for(const AnalyzeBench& bench, const std::string& dataset) {
  LoaderOptions options;
  options.dataset = {dataset};
  options.batch = 32;
  options.seed = 1;
  options.chain = {random_resized_crop(224), random_flip(), normalize(kImageNet)};
  options.rewrite = Rewrite::kOff;
  options.source.index_folder = bench.work;
  return options;
}

std::string storage_text(double bytes_per_second) {
  return fmt::format("{}B/s,1ms", std::llround(bytes_per_second));
}

// One form of the dataset: what was measured of it, and points against the loader.
class FormBench {
 public:
  FormBench(const AnalyzeBench& bench, const char* form, LoaderOptions options)
      : bench_(bench), form_(form), options_(std::move(options)) {}

  Status run();

 private:
  Status measure_once();
  Status check(const Point& point);

  const AnalyzeBench& bench_;
  const char* form_;
  LoaderOptions options_;
  Measured measured_;
  JobSetup here_;
  double prep_ = 0;  // samples per second on all cores
  double mean_ = 0;  // bytes of a sample
};

// How fast prep is decides what slow storage is; then everything is measured over that.
Status FormBench::measure_once() {
  FORELOAD_ASSIGN(const auto source, open_source({.datasets = options_.dataset, .index_folder = bench_.work}));
  FORELOAD_ASSIGN(const LoadedSamples samples, load_samples(*source, 64_MiB));
  FORELOAD_ASSIGN(const Chain chain, Chain::compile({.transforms = options_.chain}));
  FORELOAD_ASSIGN(prep_, chain_rate(samples, chain, usable_cores(), std::chrono::seconds(1)));
  mean_ = static_cast<double>(source->total_bytes()) / static_cast<double>(source->size());
  LoaderOptions slow = options_;
  slow.storage = storage_text(kMiddling * prep_ * mean_);
  FORELOAD_ASSIGN(measured_, measure(slow, {.scratch = bench_.work}));
  FORELOAD_ASSIGN(const PlannedJob job, PlannedJob::open(slow));
  here_ = job.setup(available_memory());
  return {};
}

Status FormBench::check(const Point& point) {
  const std::string name = fmt::format("analyze/{}_{}", form_, point.name);
  if (point.threads > usable_cores()) {
    bench_.report.skip(name, fmt::format("needs {} cores", point.threads));
    return {};
  }
  LoaderOptions options = options_;
  options.workers = point.threads;
  options.storage = storage_text(point.storage * prep_ * mean_);
  const double accelerator = point.accelerator * prep_;
  FORELOAD_ASSIGN(const MeasuredRate rate,
                  measured_rate(options, {.accelerator = accelerator, .cached = point.cached}));
  Measured measured = measured_;
  measured.accelerator = {accelerator, accelerator, accelerator, 1};
  JobSetup setup = here_;
  setup.threads = point.threads;
  setup.storage = point.storage * prep_ * mean_;
  setup.cache = static_cast<Bytes>(point.cached * static_cast<double>(measured.bytes));
  const auto made = Model(measured, here_).predict(setup);
  if (!made) return Error{Code::kInvalid, name + ": too little could be measured to predict it"};
  const double off = made->stalls.rate / rate.samples_per_s.value - 1;
  bench_.report.add(
      name, std::abs(off), "share", kGoal, false,
      fmt::format("predicted {:.0f} samples/s ({:.0f} … {:.0f}), measured {:.0f} ({:.0f} … {:.0f}), {:+.1f} "
                  "%; {} limits; {:.0f} % of the bytes cached ({:.0f} % asked), storage {:.0f} MB/s, "
                  "accelerator {:.0f}/s, {} threads",
                  made->stalls.rate, made->low, made->high, rate.samples_per_s.value, rate.samples_per_s.low,
                  rate.samples_per_s.high, 100 * off, bound_name(made->stalls.bound), 100 * rate.cached,
                  100 * point.cached, *setup.storage / 1e6, accelerator, point.threads));
  return {};
}

Status FormBench::run() {
  FORELOAD_TRY(measure_once());
  for (const Point& point : kPoints) FORELOAD_TRY(check(point));
  return {};
}

Status raw(const AnalyzeBench& bench) {
  return FormBench(bench, "raw", options_for(bench, bench.raw)).run();
}

Status converted(const AnalyzeBench& bench) {
  FORELOAD_TRY(convert_dataset({.source = {.datasets = {bench.raw}}, .destination = bench.records}));
  return FormBench(bench, "converted", options_for(bench, bench.records)).run();
}

// A default analysis, as a person starts it.
Status command(const AnalyzeBench& bench) {
  if (bench.program.empty()) {
    for (const char* name : {"analyze/seconds", "analyze/bytes_read"}) bench.report.skip(name, "there is no foreload");
    return {};
  }
  FORELOAD_ASSIGN(const std::string text, output_of({bench.program, "analyze", bench.raw, "--accelerator",
                                                     "resnet50-a100", "--index-folder", bench.work, "--json"}));
  const auto report = nlohmann::json::parse(text, nullptr, false);
  if (!report.is_object() || !report.contains("seconds")) return Error{Code::kIo, "foreload analyze reported nothing"};
  const std::string how = fmt::format("foreload analyze of {} generated JPEGs, nothing else given", kImages);
  bench.report.add("analyze/seconds", report["seconds"].get<double>(), "s", 60, false, how);
  bench.report.add("analyze/bytes_read", report["bytes_read"].get<double>(), "bytes", 2e9, false, how);
  return {};
}

constexpr BenchPart<AnalyzeBench> kParts[] = {{"raw", raw}, {"converted", converted}, {"command", command}};

Status run(const BenchSettings& settings, BenchReport& report) {
  FORELOAD_ASSIGN(const std::string work, make_fresh_folder(settings.work, "analyze"));
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "foreload";
  const AnalyzeBench bench{std::filesystem::exists(here) ? here.string() : "", work, work + "/raw", work + "/records",
                           report};
  Status done = [&]() -> Status {
    FORELOAD_TRY(generate_dataset({.folder = bench.raw, .images = kImages, .seed = 1}));
    return run_parts<AnalyzeBench>(settings, kParts, bench);
  }();
  std::error_code ignored;
  std::filesystem::remove_all(work, ignored);
  return done;
}

}  // namespace
}  // namespace foreload

int main(int argc, char** argv) {
  using namespace foreload;
  return bench_main<AnalyzeBench>("bench/analyze", {argv + 1, argv + argc}, kParts, run);
}
