#include "probe/storage_epochs.h"

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "tier/arena.h"

namespace foreload {

Result<EpochRun> run_epoch(Loader& loader, Duration step) {
  const Epoch epoch = loader.position().epoch;
  EpochRun run;
  std::size_t full = 1;
  // An accelerator does not oversleep, as this thread does on a busy machine: its time is that of waits and steps.
  for (Time free = now();;) {
    const Time asked = now();
    FORELOAD_ASSIGN(const auto batch, loader.next());
    if (!batch) break;
    const Duration wait = now() - asked;
    run.waits.push_back(seconds(wait));
    full = std::max(full, batch->size());
    const auto share = static_cast<double>(batch->size()) / static_cast<double>(full);
    const auto busy = Duration(static_cast<std::int64_t>(share * static_cast<double>(step.count())));
    free = std::max(free, asked - step) + wait + busy;
    std::this_thread::sleep_until(std::chrono::steady_clock::time_point(free));
  }
  const std::vector<EpochStats> all = loader.stats().epochs;
  const auto found = std::find_if(all.begin(), all.end(), [&](const EpochStats& each) { return each.epoch == epoch; });
  if (found == all.end()) return Error{Code::kInvalid, "the loader has forgotten the epoch that has just ended"};
  run.seconds = seconds(found->wall);
  run.source_bytes = found->source_bytes;
  return run;
}

// What else the budget pays for depends on it: a few corrections find it. They miss when all fits although less was
// asked for, or when too little is left to open with; then the middle between what is too little and too much is tried.
Result<Bytes> budget_for_cache(LoaderOptions options, Bytes cached) {
  Bytes little = 0;
  Bytes much = cached + 64_MiB;
  options.memory = much;
  for (int correction = 0; correction < 24; ++correction) {
    auto loader = Loader::open(options);
    if (!loader && loader.error().code != Code::kNoMemory) return std::move(loader).error();
    const Bytes kept = loader ? loader->stats().cache_capacity : 0;
    if (std::max(kept, cached) - std::min(kept, cached) <= cached / 500) break;
    (kept < cached ? little : much) = options.memory;
    const Bytes corrected = options.memory + cached - std::min(options.memory + cached, kept);
    if (loader && corrected > little && corrected < much && correction < 4) {
      options.memory = corrected;
    } else {
      if (kept < cached && options.memory == much) much *= 2;
      options.memory = little + (much - little) / 2;
    }
    if (much - little < 2) break;
  }
  return options.memory;
}

Bytes cached_when_full(const Loader& loader, Bytes length) {
  return loader.stats().cache_capacity / Arena::footprint(length) * length;
}

Result<double> first_batch_seconds(const LoaderOptions& options) {
  const Time start = now();
  FORELOAD_ASSIGN(Loader loader, Loader::open(options));
  FORELOAD_TRY(loader.next());
  return seconds(now() - start);
}

Result<double> fill_rate(const LoaderOptions& options, Duration from, Duration until) {
  FORELOAD_ASSIGN(const Loader loader, Loader::open(options));
  const Time start = now();
  std::this_thread::sleep_for(from);
  const Time first = now();
  const Bytes before = loader.stats().cached_bytes;
  std::this_thread::sleep_until(std::chrono::steady_clock::time_point(start + until));
  const Bytes after = loader.stats().cached_bytes;
  return static_cast<double>(after - before) / seconds(now() - first);
}

}  // namespace foreload
