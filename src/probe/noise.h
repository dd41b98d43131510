// noise_plane: zero-mean noise with equal energy in every octave, the 1/f spectrum of photographs.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"

namespace foreload {

// A fast stream of bits for pixels. Deterministic; not for anything that decides order.
class NoiseBits {
 public:
  explicit NoiseBits(std::uint64_t seed) : state_(mix64(seed)) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    return mix64(state_);
  }

 private:
  std::uint64_t state_;
};

struct NoiseShape {
  unsigned width = 0;
  unsigned height = 0;
  unsigned octaves = 6;  // from the finest; the longest wavelength is 2^octaves pixels
  // Share of the finest octave's energy, in 1/256: a lens never delivers all of it. 0: smooth, as colour is.
  int finest = 256;
};

// width × height values; their standard deviation is about 30 for six octaves.
std::vector<std::int16_t> noise_plane(std::uint64_t seed, const NoiseShape& shape);

}  // namespace foreload
