// Batch: prepared samples on lease. The memory belongs to the loader's ring; it returns there when
// the Batch is destroyed, and is kept alive by it even if the loader is gone. Spans are valid while it
// lives. Move-only; may be released on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "foreload/transform.h"
#include "foreload/types.h"

namespace foreload {

// What the chain makes of one sample.
struct TensorSpec {
  DType dtype = DType::kF32;
  std::vector<std::uint64_t> shape;  // of one sample, without the batch dimension

  Bytes bytes() const;
  bool operator==(const TensorSpec&) const = default;
};

// What a sample was mixed with, by mixup or cutmix.
struct Mix {
  std::int64_t other_label = kNoLabel;
  float own_share = 1;  // of the sample's own label; the other has the rest

  bool operator==(const Mix&) const = default;
};

class Batch {
 public:
  Batch() = default;
  Batch(Batch&& other) noexcept { swap(other); }
  Batch& operator=(Batch&& other) noexcept {
    Batch moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~Batch() { release(); }

  std::size_t size() const { return labels_.size(); }  // samples; 0 is possible with LastBatch::kRagged
  const TensorSpec& sample_spec() const { return *spec_; }

  // size() tensors, one after the other; of a ragged batch all values, see offsets().
  std::span<const std::byte> data() const { return data_; }
  // Of a ragged batch: sample i is elements offsets()[i] … offsets()[i+1]-1. Otherwise empty.
  std::span<const std::uint64_t> offsets() const { return offsets_; }
  std::span<const std::int64_t> labels() const { return labels_; }
  std::span<const Mix> mixes() const { return mixes_; }   // empty when the chain does not mix
  std::span<const SampleId> ids() const { return ids_; }  // what was delivered, substitutes included
  std::span<const Position> positions() const { return positions_; }

  Epoch epoch() const { return epoch_; }
  std::uint64_t step() const { return step_; }  // global batch number inside the epoch

  // The tensors as elements of T. REQUIRES: sizeof(T) is the dtype's size.
  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_.data()), data_.size() / sizeof(T)};
  }

  void release();

 private:
  friend class BatchAccess;
  void swap(Batch& other) noexcept;

  void (*release_)(void* owner, std::uint32_t slot) = nullptr;
  std::shared_ptr<void> owner_;
  std::uint32_t slot_ = 0;
  const TensorSpec* spec_ = nullptr;
  std::span<const std::byte> data_;
  std::span<const std::int64_t> labels_;
  std::span<const std::uint64_t> offsets_;
  std::span<const Mix> mixes_;
  std::span<const SampleId> ids_;
  std::span<const Position> positions_;
  Epoch epoch_ = 0;
  std::uint64_t step_ = 0;
};

}  // namespace foreload
