// The header of NumPy's .npy files, versions 1 to 3. Untrusted input: bounded, nothing is evaluated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "foreload/batch.h"
#include "foreload/result.h"

namespace foreload {

struct NpyHeader {
  static constexpr std::size_t kMaxRank = 32;  // as NumPy's

  DType dtype = DType::kF32;
  std::array<std::uint64_t, kMaxRank> shape_room{};
  std::size_t rank = 0;
  std::size_t data_offset = 0;

  std::span<const std::uint64_t> shape() const { return {shape_room.data(), rank}; }
};

bool is_npy(std::span<const std::byte> bytes);
// kBadSample, with the reason: broken, big-endian, Fortran order, or an element type that tensors do not have.
Result<NpyHeader> parse_npy(std::span<const std::byte> bytes);

// The bytes of the array inside `sample`, which must be exactly one of this spec. kBadSample otherwise.
Result<std::span<const std::byte>> npy_data(std::span<const std::byte> sample, const TensorSpec& spec);
Result<std::span<const std::byte>> headerless_data(std::span<const std::byte> sample, const TensorSpec& spec);

}  // namespace foreload
