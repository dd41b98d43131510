// Ids, positions and offsets are unsigned there and signed here: torch knows no unsigned 64-bit numbers, and none of
// them ever reaches the sign bit.
#include "lease.h"

#include <cstring>

namespace foreload::python {

namespace {

constexpr std::size_t kAlignment = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Lease::Lease(Batch batch, HeldCount held)
    : batch_(std::move(batch)),
      held_(std::move(held)),
      spec_(batch_.sample_spec()),
      size_(batch_.size()),
      epoch_(batch_.epoch()),
      step_(batch_.step()),
      columns_{batch_.data(),
               std::as_bytes(batch_.labels()),
               std::as_bytes(batch_.ids()),
               std::as_bytes(batch_.positions()),
               std::as_bytes(batch_.offsets()),
               std::as_bytes(batch_.mixes())} {
  ++*held_;
}

Lease::~Lease() {
  batch_.release();
  if (held_) --*held_;
}

void Lease::detach() {
  std::size_t total = kAlignment;
  for (const auto& column : columns_) total += aligned(column.size());
  copy_.resize(total);
  std::byte* to = copy_.data() + (aligned(reinterpret_cast<std::uintptr_t>(copy_.data())) -
                                  reinterpret_cast<std::uintptr_t>(copy_.data()));
  for (auto& column : columns_) {
    if (!column.empty()) std::memcpy(to, column.data(), column.size());
    column = {to, column.size()};
    to += aligned(column.size());
  }
  batch_.release();
  --*held_;
  held_.reset();
}

ArraySpec Lease::data() const {
  const auto& bytes = columns_[kData];
  if (ragged()) return {bytes.data(), spec_.dtype, {static_cast<std::int64_t>(bytes.size() / dtype_size(spec_.dtype))}};
  ArraySpec array{bytes.data(), spec_.dtype, {static_cast<std::int64_t>(size_)}};
  for (const std::uint64_t dimension : spec_.shape) array.shape.push_back(static_cast<std::int64_t>(dimension));
  return array;
}

ArraySpec Lease::column(Column which, std::size_t length) const {
  return {columns_[which].data(), DType::kI64, {static_cast<std::int64_t>(length)}};
}

ArraySpec Lease::other_labels() const {
  ArraySpec array = column(kMixes, size_);
  array.data += offsetof(Mix, other_label);
  array.strides = {sizeof(Mix) / sizeof(std::int64_t)};
  return array;
}

ArraySpec Lease::own_shares() const {
  ArraySpec array = column(kMixes, size_);
  array.dtype = DType::kF32;
  array.data += offsetof(Mix, own_share);
  array.strides = {sizeof(Mix) / sizeof(float)};
  return array;
}

}  // namespace foreload::python
