#include "foreload/batch.h"

namespace foreload {

void Batch::release() {
  if (release_ != nullptr) release_(owner_.get(), slot_);
  release_ = nullptr;
  owner_.reset();
  data_ = {};
  labels_ = {};
  offsets_ = {};
  mixes_ = {};
  ids_ = {};
  positions_ = {};
}

void Batch::swap(Batch& other) noexcept {
  std::swap(release_, other.release_);
  std::swap(owner_, other.owner_);
  std::swap(slot_, other.slot_);
  std::swap(spec_, other.spec_);
  std::swap(data_, other.data_);
  std::swap(labels_, other.labels_);
  std::swap(offsets_, other.offsets_);
  std::swap(mixes_, other.mixes_);
  std::swap(ids_, other.ids_);
  std::swap(positions_, other.positions_);
  std::swap(epoch_, other.epoch_);
  std::swap(step_, other.step_);
}

}  // namespace foreload
