// Lease: a Batch as Python holds it, shared by all views of its arrays. The slot goes back to the ring when the last
// view dies, on whatever thread that happens; nothing here touches a Python object.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "foreload/batch.h"

namespace foreload::python {

// How many slots Python holds; outlives the loader while views are alive.
using HeldCount = std::shared_ptr<std::atomic<unsigned>>;

// One array of a batch.
struct ArraySpec {
  const std::byte* data = nullptr;
  DType dtype = DType::kU8;
  std::vector<std::int64_t> shape{};
  std::vector<std::int64_t> strides{};  // in elements; empty: row by row
};

class Lease {
 public:
  Lease(Batch batch, HeldCount held);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // Moves the content to memory of its own and gives the slot back. REQUIRES: no view exists yet.
  void detach();

  bool copied() const { return !held_; }
  std::size_t size() const { return size_; }
  Epoch epoch() const { return epoch_; }
  std::uint64_t step() const { return step_; }

  ArraySpec data() const;
  ArraySpec labels() const { return column(Column::kLabels, size_); }
  ArraySpec ids() const { return column(Column::kIds, size_); }
  ArraySpec positions() const { return column(Column::kPositions, size_); }
  bool ragged() const { return !columns_[kOffsets].empty(); }
  bool mixed() const { return !columns_[kMixes].empty(); }
  ArraySpec offsets() const { return column(Column::kOffsets, size_ + 1); }  // REQUIRES: ragged()
  ArraySpec other_labels() const;                                            // REQUIRES for both: mixed()
  ArraySpec own_shares() const;

 private:
  enum Column { kData, kLabels, kIds, kPositions, kOffsets, kMixes, kColumns };
  ArraySpec column(Column which, std::size_t length) const;

  Batch batch_;
  HeldCount held_;  // null once detached
  std::vector<std::byte> copy_;
  TensorSpec spec_;
  std::size_t size_ = 0;
  Epoch epoch_ = 0;
  std::uint64_t step_ = 0;
  std::array<std::span<const std::byte>, kColumns> columns_;
};

}  // namespace foreload::python
