// The plain loops. The sums can not overflow: weights are at least 0 and add up to about 2^22, pixels are
// below 2^8. The rounded weights of a place may add up to slightly more than one, hence the upper bound.
#include "prep/resize_kernels.h"

#include <algorithm>

namespace foreload {

namespace {

constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);
constexpr std::size_t kBlock = 64;

std::uint8_t pixel(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::min(sum >> kWeightBits, 255));
}

void plain_row(const RowResize& job) {
  const RowWeights& weights = job.weights;
  for (std::size_t place = 0; place < weights.first.size(); ++place) {
    const std::uint8_t* in = job.in + std::size_t{weights.first[place]} * kPixelBytes;
    std::int32_t sums[kPixelBytes] = {kHalf, kHalf, kHalf, kHalf};
    for (std::uint32_t tap = 0; tap < weights.groups * RowWeights::kGroup; ++tap, in += kPixelBytes) {
      const std::int16_t* low = weights.numbers.data() + weights.index(place, tap);
      const std::int32_t weight = low[0] + low[RowWeights::kGroup] * (1 << RowWeights::kLowBits);
      for (std::size_t channel = 0; channel < kPixelBytes; ++channel) sums[channel] += in[channel] * weight;
    }
    for (std::size_t channel = 0; channel < kPixelBytes; ++channel) {
      job.out[place * kPixelBytes + channel] = pixel(sums[channel]);
    }
  }
}

void plain_column(const ColumnResize& job) {
  for (std::size_t at = 0; at < job.bytes; at += kBlock) {
    std::int32_t sums[kBlock];
    std::fill(std::begin(sums), std::end(sums), kHalf);
    std::uint32_t slot = job.first;
    for (std::uint32_t i = 0; i < job.count; ++i) {
      const std::uint8_t* in = job.ring + slot * job.row_bytes + at;
      for (std::size_t k = 0; k < kBlock; ++k) sums[k] += in[k] * job.weights[i];
      slot = slot + 1 == job.ring_rows ? 0 : slot + 1;
    }
    for (std::size_t k = 0; k < kBlock; ++k) job.out[at + k] = pixel(sums[k]);
  }
}

constexpr ResizeKernels kPlain{"plain", plain_row, plain_column};

}  // namespace

const ResizeKernels& plain_resize_kernels() {
  return kPlain;
}

const ResizeKernels& best_resize_kernels() {
  static const ResizeKernels* const avx2 = avx2_resize_kernels();
  return avx2 ? *avx2 : kPlain;
}

}  // namespace foreload
