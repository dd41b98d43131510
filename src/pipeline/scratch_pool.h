// ScratchPool: the part of the memory budget that large decodes share. A worker takes all it needs at once and gives it
// back before it takes again, so nobody waits for somebody who waits. Every worker also owns a fixed share that it
// need not ask for.
#pragma once

#include <atomic>

#include "base/mutex.h"
#include "foreload/types.h"

namespace foreload {

class ScratchPool {
 public:
  // Half of `bytes` is divided into the workers' own shares, half is shared.
  ScratchPool(Bytes bytes, unsigned workers);

  Bytes own_share() const { return own_share_; }
  Bytes largest() const { return own_share_ + shared_; }  // what one sample may need

  // Blocks until `bytes` beyond the own share are free. False: stopped. REQUIRES: bytes ≤ largest() - own_share().
  bool take(Bytes bytes) FORELOAD_EXCLUDES(mutex_);
  // The same without waiting: false when they are not free now.
  bool try_take(Bytes bytes) FORELOAD_EXCLUDES(mutex_);
  void grow_to(Bytes largest_wanted) FORELOAD_EXCLUDES(mutex_);  // if it is less
  void give(Bytes bytes) FORELOAD_EXCLUDES(mutex_);
  void stop() FORELOAD_EXCLUDES(mutex_);
  void restart() FORELOAD_EXCLUDES(mutex_);

 private:
  Bytes own_share_;
  std::atomic<Bytes> shared_;
  Mutex mutex_;
  CondVar changed_;
  Bytes free_ FORELOAD_GUARDED_BY(mutex_);
  bool stopped_ FORELOAD_GUARDED_BY(mutex_) = false;
};

}  // namespace foreload
