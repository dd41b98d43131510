// Accounts: what every epoch delivered, what it cost and what its consumer waited for. Written by the consumer's
// thread, read by any.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "foreload/loader.h"
#include "pipeline/ring.h"

namespace foreload {

// The part of a wait during which bytes were missing, and the part during which prep was.
struct Wait {
  Duration fetch{};
  Duration prep{};
};

// A consumer waited from `start` to `end`; the batch's last bytes came at `bytes_complete`.
Wait split_wait(Time start, Time end, Time bytes_complete);

class Accounts {
 public:
  void begin_epoch(Epoch epoch, Time now) FORELOAD_EXCLUDES(mutex_);
  // `padded`: the ids at the batch's padded positions.
  void add_batch(std::uint64_t samples, std::span<const SampleId> padded, const BatchCost& cost, const Wait& wait)
      FORELOAD_EXCLUDES(mutex_);
  void end_epoch(Time now) FORELOAD_EXCLUDES(mutex_);
  std::vector<EpochStats> list(Time now) const FORELOAD_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::deque<EpochStats> epochs_ FORELOAD_GUARDED_BY(mutex_);  // at most kKeptEpochs
  Time started_ FORELOAD_GUARDED_BY(mutex_){};
  bool running_ FORELOAD_GUARDED_BY(mutex_) = false;
};

}  // namespace foreload
