#include "loader/lease_desk.h"

#include <unistd.h>

namespace foreload {

// The one place that may fill a Batch.
class BatchAccess {
 public:
  static Batch make(std::shared_ptr<LeaseDesk> desk, std::uint32_t slot) {
    const Ring& ring = desk->ring();
    const BatchPlan plan = ring.plan_of(slot);
    Batch batch;
    batch.release_ = [](void* owner, std::uint32_t index) { static_cast<LeaseDesk*>(owner)->give_back(index); };
    batch.slot_ = slot;
    batch.spec_ = &desk->spec();
    batch.data_ = ring.data(slot);
    batch.offsets_ = ring.offsets(slot);
    batch.labels_ = ring.labels(slot);
    batch.mixes_ = ring.mixed(slot);
    batch.ids_ = ring.ids(slot);
    batch.positions_ = ring.positions(slot);
    batch.epoch_ = plan.epoch;
    batch.step_ = plan.step;
    batch.owner_ = std::move(desk);
    return batch;
  }
};

LeaseDesk::LeaseDesk(std::shared_ptr<Ring> ring, unsigned reader, TensorSpec spec, std::uint64_t stream)
    : ring_(std::move(ring)), reader_(reader), spec_(std::move(spec)), stream_(stream), owner_(::getpid()) {}

LeaseDesk::~LeaseDesk() {
  if (is_own() || ::getpid() != owner_) return;
  ring_->detach(reader_);
  ring_->remove_reader(reader_);
}

Batch LeaseDesk::lend(std::uint32_t slot) {
  return BatchAccess::make(shared_from_this(), slot);
}

void LeaseDesk::give_back(std::uint32_t slot) {
  if (::getpid() != owner_) return;  // a forked child: the batch is the parent's, maybe in memory that both share
  ring_->release(reader_, slot);
  if (!is_own()) return ring_->wake_feeder();
  MutexLock lock(mutex_);
  if (pipeline_ != nullptr) pipeline_->slot_freed();  // wakes the fetcher; never blocks
}

void LeaseDesk::tell(Pipeline* pipeline) {
  MutexLock lock(mutex_);
  pipeline_ = pipeline;
}

}  // namespace foreload
