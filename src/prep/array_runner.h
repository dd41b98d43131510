// ArrayRunner: one sample's way through a chain of arrays: found in its file, checked against what the chain declared,
// a window drawn if there is one, and copied. The spec must outlive it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/random.h"
#include "foreload/result.h"
#include "prep/npy.h"
#include "prep/op.h"

namespace foreload {

// What the chain makes of an array.
TensorSpec array_output(const ArraySpec& spec);

class ArrayRunner {
 public:
  // kBadSample when the sample is not what `spec` says. `sample` must live until finish().
  Status begin(const ArraySpec& spec, std::span<const std::byte> sample, KeyedRandom random);
  // REQUIRES: begin() succeeded; `out` has room for array_output().
  void finish(std::span<std::byte> out) const;
  std::uint64_t length() const { return length_; }  // elements of a ragged sample

 private:
  const ArraySpec* spec_ = nullptr;
  std::span<const std::byte> data_;
  std::array<std::uint64_t, NpyHeader::kMaxRank> origin_{};
  std::uint64_t length_ = 0;
};

}  // namespace foreload
