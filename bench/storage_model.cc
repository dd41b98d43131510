#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/machine.h"
#include "probe/child.h"
#include "probe/loader_rates.h"
#include "probe/storage_epochs.h"
#include "probe/storage_page_cache.h"
#include "storage_parts.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Bytes kReaderProcess = 8_MiB;  // beside what it reads

// Later epochs of a loader whose cache holds a part of the dataset.
struct Steady {
  double cached = 0;  // share
  double seconds = 0;
  double off_plan = 0;  // the epoch whose source bytes are farthest from dataset − cache
};

Result<Steady> steady_epochs(const StorageBench& bench, const LoaderOptions& options, Duration step) {
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
Result<double> prep_rate(const StorageBench& bench) {
  const LoaderOptions options = bench.set.options();
  FORELOAD_ASSIGN(const auto source, open_source({.datasets = options.dataset, .index_folder = bench.set.folder()}));
  FORELOAD_ASSIGN(const LoadedSamples samples, load_samples(*source, 64_MiB));
  FORELOAD_ASSIGN(const Chain chain, Chain::compile({.transforms = options.chain}));
  FORELOAD_ASSIGN(const double rate, chain_rate(samples, chain, usable_cores(), 300ms));
  return rate * static_cast<double>(StorageSet::kLength);
}

// The share of the dataset that the page cache of this size has to read again in every epoch.
Result<double> page_cache_misses(const StorageBench& bench, Bytes limit) {
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

void page_cache_row(const StorageBench& bench, const Steady& ours, int percent) {
  const std::string name = fmt::format("storage/page_cache_against_ours_{}", percent);
  const auto all = static_cast<double>(bench.set.bytes());
  const auto kept = static_cast<Bytes>(ours.cached * all);
  const auto misses = page_cache_misses(bench, kept + kReaderProcess);
  if (!misses.ok()) return bench.report.skip(name, misses.error().message);
  bench.report.add(
      name, *misses * all / kStorageRate / ours.seconds, "ratio", 1.0, true,
      fmt::format("epoch time. 8 threads that read the same files in the same order, in a control group of "
                  "our cache's size: {:.1f} % of the bytes came from the block device (ours: {:.1f} %), "
                  "which at the emulated rate takes their share of the time",
                  100 * *misses, 100 * (1 - ours.cached)));
}

// The same cache, but whoever was used least recently goes.
Status lru_row(const StorageBench& bench, LoaderOptions options, const Steady& ours, Duration step, int percent) {
  options.eviction = Eviction::kLru;
  FORELOAD_ASSIGN(const Steady lru, steady_epochs(bench, options, step));
  bench.report.add(
      fmt::format("storage/lru_against_ours_{}", percent), lru.seconds / ours.seconds, "ratio", 1.0, true,
      fmt::format("epoch time with eviction=lru and the same memory ({:.1f} %), median of {} later epochs: {:.3f} s",
                  100 * ours.cached, kRounds, lru.seconds));
  return {};
}

}  // namespace

// Epoch time against max(D·(1−x)/S, D/P, D/G).
Status bench_model(const StorageBench& bench) {
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
    FORELOAD_TRY(lru_row(bench, options, ours, step, percent));
  }
  return {};
}

Status page_cache_child(const std::string& group, const std::string& samples, std::uint64_t size, Epoch epochs) {
  FORELOAD_TRY(MemoryGroup::enter(group));
  FORELOAD_ASSIGN(const std::vector<Bytes> read,
                  read_through_page_cache({.samples = samples, .size = size, .epochs = epochs}));
  fmt::print("[{}]\n", fmt::join(read, ","));
  return {};
}

}  // namespace foreload
