#include "pipeline/scratch_pool.h"

#include <algorithm>

#include "base/check.h"

namespace foreload {

ScratchPool::ScratchPool(Bytes bytes, unsigned workers)
    : own_share_(bytes / 2 / workers), shared_(bytes - own_share_ * workers), free_(shared_) {}

bool ScratchPool::take(Bytes bytes) {
  FORELOAD_CHECK(bytes <= shared_, "a sample that can never fit is refused before");
  MutexLock lock(mutex_);
  while (!stopped_ && free_ < bytes) changed_.wait(mutex_);
  if (stopped_) return false;
  free_ -= bytes;
  return true;
}

bool ScratchPool::try_take(Bytes bytes) {
  MutexLock lock(mutex_);
  if (stopped_ || free_ < bytes) return false;
  free_ -= bytes;
  return true;
}

void ScratchPool::grow_to(Bytes largest_wanted) {
  MutexLock lock(mutex_);
  const Bytes more = largest_wanted - std::min(largest_wanted, largest());
  shared_ += more;
  free_ += more;
  changed_.notify_all();
}

void ScratchPool::give(Bytes bytes) {
  MutexLock lock(mutex_);
  free_ += bytes;
  changed_.notify_all();
}

void ScratchPool::stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

void ScratchPool::restart() {
  MutexLock lock(mutex_);
  stopped_ = false;
}

}  // namespace foreload
