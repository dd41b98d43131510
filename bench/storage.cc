// bench/storage: the storage hierarchy against its model and the limits of this machine.
//
//   storage [--json] [--work DIR] [--only PART…]        parts: model, tiers, disk, objects, bursts, start
//
// Slow storage is emulated (a throttled source), so that the figures are ratios that a fast machine gives as well. The
// dataset is made in a fresh folder below DIR and removed at the end.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "parts.h"
#include "probe/loader_rates.h"
#include "probe/storage_epochs.h"
#include "storage_parts.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSamples = 6000;
constexpr Bytes kAmple = 1536_MiB;  // a budget with which everything is cached

// The p-th part of the values lies below.
double quantile(std::vector<double> values, double p) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(p * static_cast<double>(values.size() - 1))];
}

// Memory and disk hold everything: what later epochs and later runs read from the source.
Status tiers(const StorageBench& bench) {
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

// Half of the samples are cached, and the accelerator is just slower than storage.
Status bursts(const StorageBench& bench) {
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

// Filling the cache delays nobody, and uses all of the storage.
Status start(const StorageBench& bench) {
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

constexpr BenchPart<StorageBench> kParts[] = {{"model", bench_model},     {"tiers", tiers},   {"disk", bench_disk},
                                              {"objects", bench_objects}, {"bursts", bursts}, {"start", start}};

Status run(const BenchSettings& settings, BenchReport& report) {
  FORELOAD_ASSIGN(const StorageSet set, StorageSet::make(settings.work, kSamples));
  const StorageBench bench{std::filesystem::read_symlink("/proc/self/exe").string(), set, report};
  return run_parts<StorageBench>(settings, kParts, bench);
}

int main_with(const std::vector<std::string>& words) {
  if (words.size() == 5 && words[0] == "--page-cache") {
    const Status done = page_cache_child(words[1], words[2], std::stoull(words[3]), std::stoull(words[4]));
    if (!done.ok()) fmt::print(stderr, "bench/storage: {}\n", done.error().message);
    return done.ok() ? 0 : 2;
  }
  return bench_main<StorageBench>("bench/storage", words, kParts, run);
}

}  // namespace
}  // namespace foreload

int main(int argc, char** argv) {
  return foreload::main_with({argv + 1, argv + argc});
}
