// What the fetcher keeps beside the ring: the bytes of every sample on its way to a worker, or why there are none.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "foreload/loader.h"
#include "pipeline/ring.h"
#include "tier/tier_stack.h"

namespace foreload {

struct Work {
  SampleId id = 0;
  unsigned attempt = 0;  // 0: the scheduled sample; k: its k-th substitute
  Lease lease;
  std::optional<PartialRead> part{};  // only this part of the bytes is there
  std::optional<Error> error{};       // instead of bytes
};

// One Work per sample of every ring slot: its lease lives until the fetcher has seen what became of it.
class WorkTable {
 public:
  WorkTable(unsigned slots, std::uint64_t batch) : batch_(batch), works_(slots * batch) {}

  static Bytes bytes_per_slot(std::uint64_t batch) { return batch * sizeof(Work); }

  Work& at(RingItem item) { return works_[item.slot * batch_ + item.index]; }
  // All but those that a worker may still read, in another process that was stopped.
  void clear(const Ring& ring) {
    for (std::size_t i = 0; i < works_.size(); ++i) {
      const RingItem item{static_cast<std::uint32_t>(i / batch_), static_cast<std::uint32_t>(i % batch_)};
      if (!ring.is_claimed(item)) works_[i] = Work{};
    }
  }

 private:
  std::uint64_t batch_;
  std::vector<Work> works_;
};

// Whether the homes that the next epoch needs are filled, as far as they can be. Any thread.
class Filling {
 public:
  std::atomic<bool> done{false};  // nothing more is to be read ahead

  void failed(const Error& error) FORELOAD_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (!error_) error_ = error;
  }
  std::optional<Error> error() const FORELOAD_EXCLUDES(mutex_) {  // of the first read that failed
    const MutexLock lock(mutex_);
    return error_;
  }

 private:
  mutable Mutex mutex_;
  std::optional<Error> error_ FORELOAD_GUARDED_BY(mutex_);
};

// The samples that were replaced, and the cap on them. Any thread.
class Quarantine {
 public:
  explicit Quarantine(std::uint64_t cap) : cap_(cap) {}

  // False: the cap is reached.
  bool add(Quarantined bad) FORELOAD_EXCLUDES(mutex_);
  std::vector<Quarantined> list() const FORELOAD_EXCLUDES(mutex_);
  std::uint64_t cap() const { return cap_; }

 private:
  std::uint64_t cap_;
  mutable Mutex mutex_;
  std::vector<Quarantined> list_ FORELOAD_GUARDED_BY(mutex_);  // at most cap_
};

}  // namespace foreload
