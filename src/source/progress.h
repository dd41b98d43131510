// Runs the scan of a dataset on its threads and reports how far it is from the thread that opens the source.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace foreload {

struct ScanProgress {
  std::atomic<std::uint64_t> done{0};
  std::atomic<std::uint64_t> total{0};  // 0: not known yet
};

// Calls work() and returns when it is done. Meanwhile, and once at the end, `report` is called on this thread.
// With an empty `report`, or where no thread can be started, work() runs on this thread.
void run_reporting(const ScanProgress& progress, const std::function<void(std::uint64_t, std::uint64_t)>& report,
                   const std::function<void()>& work);

}  // namespace foreload
