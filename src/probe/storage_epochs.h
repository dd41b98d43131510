// Epochs of a loader over emulated slow storage, with an emulated accelerator behind it.
#pragma once

#include <vector>

#include "foreload/loader.h"
#include "foreload/result.h"

namespace foreload {

struct EpochRun {
  double seconds = 0;
  Bytes source_bytes = 0;
  std::vector<double> waits{};  // seconds in each next()
};
// One epoch, from its first next() on; the accelerator takes `step` for every batch, less for a shorter
// one.
Result<EpochRun> run_epoch(Loader& loader, Duration step);

// A budget with which the loader's cache is as close to `cached` bytes as it can be.
Result<Bytes> budget_for_cache(LoaderOptions options, Bytes cached);
// How many bytes of samples a loader's cache holds when it is full. REQUIRES: all have this length.
Bytes cached_when_full(const Loader& loader, Bytes length);

// Seconds from open() to the first batch.
Result<double> first_batch_seconds(const LoaderOptions& options);
// Bytes per second that enter the cache while nobody calls next(), between `from` and `until` after open().
Result<double> fill_rate(const LoaderOptions& options, Duration from, Duration until);

}  // namespace foreload
