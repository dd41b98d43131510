// Lease: the bytes of a sample in memory, pinned while the lease lives.
#pragma once

#include <span>
#include <utility>

#include "foreload/types.h"

namespace foreload {

// Who counts leases.
class LeaseBook {
 public:
  virtual ~LeaseBook() = default;
  virtual void add(SampleId id) = 0;  // one more. REQUIRES: there is one
  virtual void drop(SampleId id) = 0;
};

class Lease {
 public:
  Lease() = default;
  // The lease is counted already.
  Lease(LeaseBook* book, SampleId id, std::span<const std::byte> bytes) : book_(book), id_(id), bytes_(bytes) {}
  Lease(Lease&& other) noexcept { swap(other); }
  Lease& operator=(Lease&& other) noexcept {
    Lease moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~Lease() {
    if (book_ != nullptr) book_->drop(id_);
  }

  bool valid() const { return book_ != nullptr; }
  std::span<const std::byte> bytes() const { return bytes_; }
  // Another lease on the same sample. REQUIRES: valid.
  Lease share() const {
    book_->add(id_);
    return Lease(book_, id_, bytes_);
  }

 private:
  void swap(Lease& other) noexcept {
    std::swap(book_, other.book_);
    std::swap(id_, other.id_);
    std::swap(bytes_, other.bytes_);
  }

  LeaseBook* book_ = nullptr;
  SampleId id_ = 0;
  std::span<const std::byte> bytes_;
};

}  // namespace foreload
