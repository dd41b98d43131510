// The parts of bench/storage, and what they share.
#pragma once

#include <string>

#include "foreload/result.h"
#include "probe/storage_set.h"
#include "report.h"

namespace foreload {

inline constexpr double kStorageRate = 200e6;
inline constexpr const char* kStorage = "200MB/s,1ms";
inline constexpr unsigned kRounds = 5;

struct StorageBench {
  std::string program;  // this one, to be started again
  const StorageSet& set;
  BenchReport& report;
};

// Epoch time and source bytes against the model; beside them the page cache and lru.
Status bench_model(const StorageBench& bench);
// The started program's part of it: reads `samples` through the page cache of a control group, and prints what came
// from the disk.
Status page_cache_child(const std::string& group, const std::string& samples, std::uint64_t size, Epoch epochs);
// The disk tier's read path against fio.
Status bench_disk(const StorageBench& bench);
// Objects of a store with latency.
Status bench_objects(const StorageBench& bench);

}  // namespace foreload
