// bench/storage: the storage hierarchy against its model and the limits of this machine.
//
//   storage [--json] [--work DIR] [--only PART…]        parts: model, tiers, disk, bursts, start
//
// Slow storage is emulated (a throttled source), so that the figures are ratios that a fast machine gives as well. The
// dataset is made in a fresh folder below DIR and removed at the end.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/machine.h"
#include "probe/child_output.h"
#include "probe/loader_rates.h"
#include "probe/storage_disk.h"
#include "probe/storage_epochs.h"
#include "probe/storage_page_cache.h"
#include "probe/storage_set.h"
#include "report.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSamples = 6000;
constexpr double kStorageRate = 200e6;
constexpr const char* kStorage = "200MB/s,1ms";
constexpr unsigned kRounds = 5;
constexpr Bytes kReaderProcess = 8_MiB;  // beside what it reads
constexpr Bytes kAmple = 1536_MiB;       // a budget with which everything is cached

struct Bench {
  std::string program;  // this one, to be started again
  const StorageSet& set;
  BenchReport& report;
};

void skip(const std::string& row, const std::string& why) {
  fmt::print(stderr, "bench/storage: {} is left out: {}\n", row, why);
}

// The p-th part of the values lies below.
double quantile(std::vector<double> values, double p) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(p * static_cast<double>(values.size() - 1))];
}

// --- model -----------------------------------------------------------------------------------------------------------

// Later epochs of a loader whose cache holds a part of the dataset.
struct Steady {
  double cached = 0;  // share
  double seconds = 0;
  double off_plan = 0;  // the epoch whose source bytes are farthest from dataset − cache
};

Result<Steady> steady_epochs(const Bench& bench, const LoaderOptions& options, Duration step) {
  FORELOAD_ASSIGN(Loader loader, Loader::open(options));
  const auto all = static_cast<double>(bench.set.bytes());
  const auto cached = static_cast<double>(cached_when_full(loader, StorageSet::kLength));
  FORELOAD_TRY(run_epoch(loader, step));  // fills the cache
  std::vector<double> times;
  Steady steady{.cached = cached / all};
  for (unsigned round = 0; round < kRounds; ++round) {
    FORELOAD_ASSIGN(const EpochRun run, run_epoch(loader, step));
    times.push_back(run.seconds);
    const double off = static_cast<double>(run.source_bytes) / (all - cached) - 1;
    if (std::abs(off) > std::abs(steady.off_plan)) steady.off_plan = off;
  }
  steady.seconds = median(times);
  return steady;
}

// Bytes per second of the chain alone, on all cores.
Result<double> prep_rate(const Bench& bench) {
  const LoaderOptions options = bench.set.options();
  FORELOAD_ASSIGN(const auto source, open_source({.datasets = options.dataset, .index_folder = bench.set.folder()}));
  FORELOAD_ASSIGN(const LoadedSamples samples, load_samples(*source, 64_MiB));
  FORELOAD_ASSIGN(const Chain chain, Chain::compile({.transforms = options.chain}));
  FORELOAD_ASSIGN(const double rate, chain_rate(samples, chain, usable_cores(), 300ms));
  return rate * static_cast<double>(StorageSet::kLength);
}

// The share of the dataset that the page cache of this size has to read again in every epoch.
Result<double> page_cache_misses(const Bench& bench, Bytes limit) {
  FORELOAD_ASSIGN(const MemoryGroup group, MemoryGroup::make(limit));
  FORELOAD_TRY(bench.set.forget());
  FORELOAD_ASSIGN(const std::string text, output_of({bench.program, "--page-cache", group.folder(), bench.set.samples(),
                                                     std::to_string(bench.set.size()), std::to_string(kRounds + 2)}));
  const auto epochs = nlohmann::json::parse(text, nullptr, false);
  if (!epochs.is_array() || epochs.size() <= 2) return Error{Code::kIo, "the page cache's reader reported nothing"};
  std::vector<double> later;
  for (std::size_t i = 2; i < epochs.size(); ++i) later.push_back(epochs[i].get<double>());
  return median(later) / static_cast<double>(bench.set.bytes());
}

// The started program's part: prints what each epoch read from the disk.
Status page_cache_child(const std::string& group, const PageCacheJob& job) {
  FORELOAD_TRY(MemoryGroup::enter(group));
  FORELOAD_ASSIGN(const std::vector<Bytes> read, read_through_page_cache(job));
  fmt::print("[{}]\n", fmt::join(read, ","));
  return {};
}

void page_cache_row(const Bench& bench, const Steady& ours, int percent) {
  const std::string name = fmt::format("storage/page_cache_against_ours_{}", percent);
  const auto all = static_cast<double>(bench.set.bytes());
  const auto kept = static_cast<Bytes>(ours.cached * all);
  const auto misses = page_cache_misses(bench, kept + kReaderProcess);
  if (!misses.ok()) return skip(name, misses.error().message);
  bench.report.add(
      name, *misses * all / kStorageRate / ours.seconds, "ratio", 1.0, true,
      fmt::format("epoch time. 8 threads that read the same files in the same order, in a control group of "
                  "our cache's size: {:.1f} % of the bytes came from the block device (ours: {:.1f} %), "
                  "which at the emulated rate takes their share of the time",
                  100 * *misses, 100 * (1 - ours.cached)));
}

// Epoch time against max(D·(1−x)/S, D/P, D/G).
Status model(const Bench& bench) {
  const auto all = static_cast<double>(bench.set.bytes());
  FORELOAD_ASSIGN(const double prep, prep_rate(bench));
  const auto batches = std::ceil(static_cast<double>(bench.set.size()) / 16);
  const double accelerator = all * 0.35 / kStorageRate / 2;  // seconds of an epoch: half of what storage takes at 65 %
  const auto step = Duration(static_cast<std::int64_t>(1e9 * accelerator / batches));
  for (const int percent : {35, 65}) {
    LoaderOptions options = bench.set.options();
    options.storage = kStorage;
    FORELOAD_ASSIGN(options.memory, budget_for_cache(options, bench.set.bytes() * static_cast<Bytes>(percent) / 100));
    FORELOAD_ASSIGN(const Steady ours, steady_epochs(bench, options, step));
    const double expected = std::max({all * (1 - ours.cached) / kStorageRate, all / prep, accelerator});
    const std::string how =
        fmt::format("median of {} later epochs of {} x 110 KB, storage 200 MB/s with 1 ms, cache {:.1f} %", kRounds,
                    bench.set.size(), 100 * ours.cached);
    bench.report.add(fmt::format("storage/epoch_off_model_{}", percent), std::abs(ours.seconds / expected - 1), "share",
                     0.05, false, fmt::format("{}: {:.3f} s, model {:.3f} s", how, ours.seconds, expected));
    bench.report.add(fmt::format("storage/source_bytes_off_plan_{}", percent), std::abs(ours.off_plan), "share", 0.01,
                     false, how + "; the epoch whose source bytes are farthest from dataset - cache");
    page_cache_row(bench, ours, percent);
  }
  return {};
}

// --- tiers -----------------------------------------------------------------------------------------------------------

// Memory and disk hold everything: what later epochs and later runs read from the source.
Status tiers(const Bench& bench) {
  LoaderOptions options = bench.set.options();
  options.storage = "600MB/s,1ms";
  options.epochs = 2;
  FORELOAD_ASSIGN(options.memory, budget_for_cache(options, bench.set.bytes() / 3));
  FORELOAD_ASSIGN(options.disk, make_fresh_folder(bench.set.folder(), "disk"));
  for (const bool again : {false, true}) {
    FORELOAD_ASSIGN(Loader loader, Loader::open(options));
    FORELOAD_ASSIGN(const EpochRun first, run_epoch(loader, 0ms));
    FORELOAD_ASSIGN(const EpochRun second, run_epoch(loader, 0ms));
    const Bytes read = again ? first.source_bytes + second.source_bytes : second.source_bytes;
    bench.report.add(again ? "storage/restart_source_bytes" : "storage/second_epoch_source_bytes",
                     static_cast<double>(read), "bytes", 0, false,
                     fmt::format("memory for a third of {} x 110 KB, disk for the rest; {}", bench.set.size(),
                                 again ? "two epochs of a new loader over the same disk folder" : "epoch 1"));
  }
  std::filesystem::remove_all(options.disk);
  return {};
}

// --- disk ------------------------------------------------------------------------------------------------------------

// The tier's read path against fio, in turns.
Status disk_against_fio(const Bench& bench, const Source& source, const DiskPathOptions& options) {
  FORELOAD_ASSIGN(const auto path, DiskPath::open(source, options));
  const FioJob job{.file = path->data_file(),
                   .block = (StorageSet::kLength + 4095) / 4096 * 4096,
                   .depth = options.depth,
                   .direct = options.direct,
                   .duration = 1500ms};
  const std::string name = options.direct ? "storage/disk_against_fio" : "storage/disk_buffered_against_fio";
  std::vector<double> ratios, rates;
  (void)path->rate(300ms);
  for (unsigned round = 0; round < kRounds; ++round) {
    FORELOAD_ASSIGN(const double ours, path->rate(1500ms));
    const auto fio = fio_rate(job);
    if (!fio.ok() && fio.error().code == Code::kNotFound) {
      skip(name, fio.error().message);
      return {};
    }
    if (!fio.ok()) return fio.error();
    ratios.push_back(ours / *fio);
    rates.push_back(ours);
  }
  bench.report.add(
      name, median(ratios), "ratio", 0.85, true,
      fmt::format("random 110-KB samples, {} at once, hashes checked, {:.2f} GB/s; fio: blocks of {} bytes, "
                  "io_uring, same file; median of {} turns",
                  options.depth, median(rates) / 1e9, job.block, kRounds));
  return {};
}

Status disk(const Bench& bench) {
  FORELOAD_ASSIGN(const auto source,
                  open_source({.datasets = {bench.set.samples()}, .index_folder = bench.set.folder()}));
  FORELOAD_ASSIGN(const std::string folder, make_fresh_folder(bench.set.folder(), "disk"));
  FORELOAD_TRY(disk_against_fio(bench, *source, {.folder = folder, .direct = true}));
  FORELOAD_TRY(disk_against_fio(bench, *source, {.folder = folder, .direct = false}));
  std::filesystem::remove_all(folder);
  return {};
}

// --- bursts ----------------------------------------------------------------------------------------------------------

// Half of the samples are cached, and the accelerator is just slower than storage.
Status bursts(const Bench& bench) {
  LoaderOptions options = bench.set.options();
  options.storage = kStorage;
  FORELOAD_ASSIGN(options.memory, budget_for_cache(options, bench.set.bytes() / 2));
  FORELOAD_ASSIGN(Loader loader, Loader::open(options));
  const auto misses = static_cast<double>(bench.set.bytes() - cached_when_full(loader, StorageSet::kLength));
  const auto batches = static_cast<double>(loader.batches_per_epoch());
  const auto step = Duration(static_cast<std::int64_t>(1e9 * misses / kStorageRate / batches / 0.95));
  FORELOAD_TRY(run_epoch(loader, 0ms));
  std::vector<double> ratios;
  double busy = 0;
  for (unsigned round = 0; round < kRounds; ++round) {
    FORELOAD_ASSIGN(const EpochRun run, run_epoch(loader, step));
    ratios.push_back(quantile(run.waits, 0.99) / (run.seconds / batches));
    busy += seconds(step) * batches / run.seconds / kRounds;
  }
  bench.report.add(
      "storage/burstiness", median(ratios), "ratio", 3.0, false,
      fmt::format("p99 of the wait in next() / mean time of a batch of 16; half cached, storage busy 95 % of the "
                  "accelerator's step of {:.1f} ms, which was busy {:.0f} %; median of {} epochs",
                  1e3 * seconds(step), 100 * busy, kRounds));
  return {};
}

// --- start -----------------------------------------------------------------------------------------------------------

// Filling the cache delays nobody, and uses all of the storage.
Status start(const Bench& bench) {
  LoaderOptions cached = bench.set.options();
  cached.storage = kStorage;
  cached.memory = kAmple;
  LoaderOptions uncached = cached;
  uncached.cache = false;
  std::vector<double> ratios, times, rates;
  for (unsigned round = 0; round < 2 * kRounds + 1; ++round) {
    FORELOAD_ASSIGN(const double with, first_batch_seconds(cached));
    FORELOAD_ASSIGN(const double without, first_batch_seconds(uncached));
    ratios.push_back(with / without);
    times.push_back(with);
  }
  for (unsigned round = 0; round < kRounds; ++round) {
    FORELOAD_ASSIGN(const double rate, fill_rate(cached, 100ms, 1600ms));
    rates.push_back(rate / kStorageRate);
  }
  bench.report.add(
      "storage/first_batch_against_uncached", median(ratios), "ratio", 1.1, false,
      fmt::format("open() to the first batch of 16 at 200 MB/s, {:.0f} ms; cache on / off, median of {} turns",
                  1e3 * median(times), ratios.size()));
  bench.report.add(
      "storage/fill_against_storage", median(rates), "ratio", 0.9, true,
      fmt::format("bytes per second that enter the cache before the first next(), 0.1 s to 1.6 s after open(), "
                  "against the configured 200 MB/s; median of {}",
                  kRounds));
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------

struct Part {
  const char* name;
  Status (*run)(const Bench&);
};
constexpr Part kParts[] = {{"model", model}, {"tiers", tiers}, {"disk", disk}, {"bursts", bursts}, {"start", start}};

struct Settings {
  std::string work = "build/bench-data";
  std::vector<std::string> only;
  bool json = false;
};

Result<Settings> parse(const std::vector<std::string>& words) {
  Settings settings;
  bool names = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool known =
        std::any_of(std::begin(kParts), std::end(kParts), [&](auto& part) { return words[i] == part.name; });
    if (words[i] == "--json") {
      settings.json = true;
    } else if (words[i] == "--work" && i + 1 < words.size()) {
      settings.work = words[++i];
    } else if (words[i] == "--only") {
      names = true;
    } else if (names && known) {
      settings.only.push_back(words[i]);
    } else {
      return Error{Code::kInvalid, fmt::format("{} is not understood: [--json] [--work DIR] [--only PART...], parts: "
                                               "model, tiers, disk, bursts, start",
                                               words[i])};
    }
  }
  return settings;
}

Status run(const Settings& settings, BenchReport& report) {
  FORELOAD_ASSIGN(const StorageSet set, StorageSet::make(settings.work, kSamples));
  const Bench bench{std::filesystem::read_symlink("/proc/self/exe").string(), set, report};
  for (const Part& part : kParts) {
    const bool wanted = settings.only.empty() ||
                        std::find(settings.only.begin(), settings.only.end(), part.name) != settings.only.end();
    if (wanted) FORELOAD_TRY(part.run(bench));
  }
  return {};
}

int main_with(const std::vector<std::string>& words) {
  const auto fail = [](const Error& error) {
    fmt::print(stderr, "bench/storage: {}\n", error.message);
    return 2;
  };
  if (words.size() == 5 && words[0] == "--page-cache") {
    const PageCacheJob job{.samples = words[2], .size = std::stoull(words[3]), .epochs = std::stoull(words[4])};
    const Status done = page_cache_child(words[1], job);
    return done.ok() ? 0 : fail(done.error());
  }
  const auto settings = parse(words);
  if (!settings.ok()) return fail(settings.error());
  BenchReport report;
  const Status done = run(*settings, report);
  return done.ok() ? report.print(settings->json) : fail(done.error());
}

}  // namespace
}  // namespace foreload

int main(int argc, char** argv) {
  return foreload::main_with({argv + 1, argv + argc});
}
