// A keyed bijection of 0 … size-1: a shuffle that needs no memory and can be asked in both directions.
// docs/design/schedule.md.
#pragma once

#include <cstdint>
#include <span>

#include "foreload/types.h"

namespace foreload {

struct OrderKey {
  std::uint64_t start = 0;
  std::uint64_t step = 1;  // odd
};

// `tag` tells the uses of one (seed, epoch) from each other.
OrderKey order_key(std::uint64_t seed, Epoch epoch, std::uint32_t tag);
// The index-th key of a family.
OrderKey order_key(const OrderKey& family, std::uint64_t index);

class KeyedBijection {
 public:
  // REQUIRES: size > 0.
  KeyedBijection(std::uint64_t size, const OrderKey& key);

  // REQUIRES: value < size, in both.
  std::uint64_t forward(std::uint64_t value) const;
  std::uint64_t backward(std::uint64_t value) const;
  // forward() of `first`, `first` + 1, … REQUIRES: the last of them is below size, too.
  void forward(std::uint64_t first, std::span<std::uint64_t> out) const;

 private:
  void round_forward(unsigned round, std::uint64_t& high, std::uint64_t& low) const;  // this one and the next
  std::uint64_t walk_forward(std::uint64_t value) const;
  std::uint64_t walk_backward(std::uint64_t value) const;
  std::uint64_t mask() const { return (std::uint64_t{1} << low_bits_) - 1; }
  std::uint64_t draw(std::uint64_t input, unsigned round) const;

  std::uint64_t size_;
  unsigned low_bits_;
  std::uint64_t high_size_;
  unsigned rounds_;
  OrderKey key_;
};

}  // namespace foreload
