// What a chain does with a batch as a whole, after its last sample and before it is delivered: ragged samples are moved
// together, pairs are mixed. Runs on the one thread that finished the last sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "foreload/batch.h"
#include "foreload/transform.h"
#include "foreload/types.h"

namespace foreload {

// A batch in its slot. Columns that the chain does not need are empty.
struct BatchBlock {
  std::uint64_t seed = 0;
  Epoch epoch = 0;
  std::span<const Position> positions;  // of its samples, rising
  std::uint64_t samples = 0;            // of an epoch: positions from here on are padding
  std::uint64_t count = 0;
  Bytes sample_bytes = 0;            // from one sample to the next in `tensors`
  std::span<std::byte> tensors;      // count × sample_bytes
  std::span<std::uint64_t> offsets;  // count + 1; element i + 1 holds the length of sample i
  std::span<const std::int64_t> labels;
  std::span<Mix> mixes;  // count
};

// Moves the samples together and turns their lengths into offsets, both counted in elements.
void compact_ragged(const BatchBlock& block, std::size_t element_bytes);

enum class MixKind { kMixup, kCutmix };

struct MixSpec {
  MixKind kind = MixKind::kMixup;
  std::uint64_t alpha_q32 = 0;
  std::uint32_t op = 0;  // index in the chain
};

// Mixes the samples of positions 2i and 2i+1 with each other. The last sample of a dataset with an odd number has no
// partner, whatever padding follows it. REQUIRES: they stand beside each other; images of u8, f16 or f32.
void mix_pairs(const BatchBlock& block, const MixSpec& spec, const TensorSpec& tensor, Layout layout);

}  // namespace foreload
