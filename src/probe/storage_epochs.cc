#include "probe/storage_epochs.h"

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "tier/arena.h"

namespace foreload {

Result<EpochRun> run_epoch(Loader& loader, Duration step) {
  const Epoch epoch = loader.position().epoch;
  EpochRun run;
  // An accelerator does not oversleep, as this thread does on a busy machine: its time is that of waits and steps.
  for (Time free = now();;) {
    const Time asked = now();
    FORELOAD_ASSIGN(const auto batch, loader.next());
    if (!batch) break;
    const Duration wait = now() - asked;
    run.waits.push_back(seconds(wait));
    free = std::max(free, asked - step) + wait + step;
    std::this_thread::sleep_until(std::chrono::steady_clock::time_point(free));
  }
  const std::vector<EpochStats> all = loader.stats().epochs;
  const auto found = std::find_if(all.begin(), all.end(), [&](const EpochStats& each) { return each.epoch == epoch; });
  if (found == all.end()) return Error{Code::kInvalid, "the loader has forgotten the epoch that has just ended"};
  run.seconds = seconds(found->wall);
  run.source_bytes = found->source_bytes;
  return run;
}

// What else the budget pays for depends on it: a few corrections find it.
Result<Bytes> budget_for_cache(LoaderOptions options, Bytes cached) {
  options.memory = cached + 64_MiB;
  for (int correction = 0; correction < 16; ++correction) {
    FORELOAD_ASSIGN(const Loader loader, Loader::open(options));
    const Bytes kept = loader.stats().cache_capacity;
    if (std::max(kept, cached) - std::min(kept, cached) <= cached / 500) break;
    options.memory += cached;
    options.memory -= std::min(options.memory, kept);
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
