#include "pipeline/work.h"

namespace foreload {

bool Quarantine::add(Quarantined bad) {
  MutexLock lock(mutex_);
  if (list_.size() >= cap_) return false;
  list_.push_back(std::move(bad));
  return true;
}

std::vector<Quarantined> Quarantine::list() const {
  MutexLock lock(mutex_);
  return list_;
}

}  // namespace foreload
