#include "pipeline/holds.h"

#include "base/check.h"

namespace foreload {

void Holds::enter(Epoch epoch, std::uint64_t block) {
  if (epoch == epoch_ && block == block_) return;
  (void)drop();
  holds_.clear();
  epoch_ = epoch;
  block_ = block;
}

void Holds::asked(SampleId id) {
  if (echo_ == 1) return;
  Hold& hold = holds_[id];
  if (++hold.asked < echo_) return;
  end(hold);
  holds_.erase(id);
}

bool Holds::wants(SampleId id, Bytes length) const {
  const auto hold = holds_.find(id);
  return hold != holds_.end() && !hold->second.lease.valid() && held_ + Arena::footprint(length) <= limit_;
}

void Holds::keep(SampleId id, Lease lease) {
  Hold& hold = holds_.at(id);
  FORELOAD_CHECK(!hold.lease.valid(), "one lease holds a sample");
  held_ += Arena::footprint(lease.bytes().size());
  hold.lease = std::move(lease);
}

bool Holds::drop() {
  const bool any = held_ > 0;
  for (auto& [id, hold] : holds_) end(hold);
  return any;
}

void Holds::end(Hold& hold) {
  if (!hold.lease.valid()) return;
  held_ -= Arena::footprint(hold.lease.bytes().size());
  hold.lease = Lease();
}

}  // namespace foreload
