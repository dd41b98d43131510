// CountedRoom: a memory tier without bytes, for so many samples of one size. Drives an eviction policy through the uses
// of a stream and says which of them were hits.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/eviction.h"

namespace foreload {

class CountedRoom : public Room {
 public:
  CountedRoom(std::uint64_t samples, std::uint64_t capacity) : here_(samples), capacity_(capacity) {}

  // The stream's next sample; what it was: a hit, or not there.
  bool use(EvictionPolicy& policy, SampleId id, Moment now) {
    policy.use(id, now);
    if (here_[id]) return true;
    (void)policy.admit(id, *this);
    return false;
  }

  bool has(SampleId id) const { return here_[id]; }
  std::uint64_t used() const { return used_; }

  bool take(SampleId id) override {
    if (used_ == capacity_) return false;
    ++used_;
    return here_[id] = true;
  }
  bool evict(SampleId id) override {
    --used_;
    here_[id] = false;
    return true;
  }

 private:
  std::vector<bool> here_;
  std::uint64_t capacity_;
  std::uint64_t used_ = 0;
};

// Calls visit(id, moment) for every use of the learner in the epochs [0, epochs).
template <typename Visit>
void for_each_use(const Stream& stream, Epoch epochs, Visit visit) {
  for (std::uint64_t number = 0; number < stream.number_of(epochs, 0); ++number) {
    const BatchPlan batch = stream.batch(number);
    for (std::uint64_t i = 0; i < batch.count; ++i) visit(stream.sample(batch, i), stream.moment(batch, i));
  }
}

}  // namespace foreload
