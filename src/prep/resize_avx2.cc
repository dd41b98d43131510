// The loops with AVX2. Multiply-add of 16-bit pairs is the cheap instruction, but weights have 22 bits: so
// every sum is kept twice, once with the low 15 bits of the weights and once with the rest, and joined at
// the end. That is exact, and equal to the plain loops bit for bit.
//
//   row      two places at once, two taps each   [r0 r1 g0 g1 b0 b1 x0 x1 | r0 r1 …] · [w0 w1 w0 w1 … | w0 w1 …]
//   column   two rows at once                    [a0 b0 a1 b1 …] · [wa wb wa wb …]
#include "prep/resize_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#define FORELOAD_AVX2 [[gnu::target("avx2")]]

namespace foreload {

namespace {

constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);
constexpr int kLowBits = RowWeights::kLowBits;
constexpr std::int32_t kLowMask = (1 << kLowBits) - 1;
constexpr std::size_t kChunk = 16;

FORELOAD_AVX2 inline __m256i joined(__m256i low, __m256i high) {
  return _mm256_add_epi32(low, _mm256_slli_epi32(high, kLowBits));
}

FORELOAD_AVX2 inline __m128i load(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

// Two places, one in each half: four taps of each per group.
FORELOAD_AVX2 inline __m256i two_places(const std::uint8_t* in0, const std::uint8_t* in1, const std::int16_t* weights,
                                        std::uint32_t groups) {
  constexpr char kNo = -1;
  const __m256i first_taps =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, kNo, 4, kNo, 1, kNo, 5, kNo, 2, kNo, 6, kNo, 3, kNo, 7, kNo));
  const __m256i last_taps =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(8, kNo, 12, kNo, 9, kNo, 13, kNo, 10, kNo, 14, kNo, 11, kNo, 15, kNo));
  __m256i low = _mm256_set1_epi32(kHalf);
  __m256i high = _mm256_setzero_si256();
  for (std::uint32_t group = 0; group < groups; ++group) {
    const __m256i eight =
        _mm256_inserti128_si256(_mm256_castsi128_si256(load(in0 + group * kChunk)), load(in1 + group * kChunk), 1);
    const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights) + group);
    const __m256i a = _mm256_shuffle_epi8(eight, first_taps);
    const __m256i b = _mm256_shuffle_epi8(eight, last_taps);
    low = _mm256_add_epi32(low, _mm256_madd_epi16(a, _mm256_shuffle_epi32(all, 0x00)));
    low = _mm256_add_epi32(low, _mm256_madd_epi16(b, _mm256_shuffle_epi32(all, 0x55)));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(a, _mm256_shuffle_epi32(all, 0xaa)));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(b, _mm256_shuffle_epi32(all, 0xff)));
  }
  return _mm256_srai_epi32(joined(low, high), kWeightBits);
}

FORELOAD_AVX2 void avx2_row(const RowResize& job) {
  const std::uint32_t groups = job.weights.groups;
  const std::size_t pair = std::size_t{groups} * 4 * RowWeights::kGroup;
  const std::int16_t* weights = job.weights.numbers.data();
  const std::uint32_t* first = job.weights.first.data();
  for (std::size_t place = 0; place < job.weights.first.size(); place += 4, weights += 2 * pair) {
    const auto in = [&](std::size_t i) { return job.in + std::size_t{first[place + i]} * kPixelBytes; };
    const __m256i even = two_places(in(0), in(2), weights, groups);
    const __m256i odd = two_places(in(1), in(3), weights + pair, groups);
    const __m256i words = _mm256_packus_epi32(even, odd);
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0b1000);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(job.out + place * kPixelBytes), _mm256_castsi256_si128(bytes));
  }
}

struct RowPair {
  const std::uint8_t* a;
  const std::uint8_t* b;
  __m256i low;  // weights
  __m256i high;
};

struct Sums {
  __m256i low[2];
  __m256i high[2];
};

// The i-th and the following row of the filter; beyond its end the same row again, with weight 0.
FORELOAD_AVX2 inline RowPair row_pair(const ColumnResize& job, std::uint32_t i) {
  std::uint32_t slot = job.first + i;
  if (slot >= job.ring_rows) slot -= job.ring_rows;
  const std::uint32_t next = slot + 1 == job.ring_rows ? 0 : slot + 1;
  const std::int32_t wa = job.weights[i];
  const std::int32_t wb = i + 1 < job.count ? job.weights[i + 1] : 0;
  const std::uint8_t* a = job.ring + slot * job.row_bytes;
  const std::uint8_t* b = i + 1 < job.count ? job.ring + next * job.row_bytes : a;
  return {a, b, _mm256_set1_epi32((wa & kLowMask) | (wb & kLowMask) << 16),
          _mm256_set1_epi32((wa >> kLowBits) | (wb >> kLowBits) << 16)};
}

FORELOAD_AVX2 inline void add_chunk(const RowPair& rows, std::size_t at, Sums& sums) {
  const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows.a + at));
  const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows.b + at));
  const __m256i pairs[2] = {_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)),
                            _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b))};
  for (int i = 0; i < 2; ++i) {
    sums.low[i] = _mm256_add_epi32(sums.low[i], _mm256_madd_epi16(pairs[i], rows.low));
    sums.high[i] = _mm256_add_epi32(sums.high[i], _mm256_madd_epi16(pairs[i], rows.high));
  }
}

FORELOAD_AVX2 inline void store_chunk(const Sums& sums, std::uint8_t* out) {
  const __m256i half = _mm256_set1_epi32(kHalf);
  __m256i words[2];
  for (int i = 0; i < 2; ++i) {
    words[i] = _mm256_srai_epi32(_mm256_add_epi32(joined(sums.low[i], sums.high[i]), half), kWeightBits);
  }
  // packus works inside each half of 128 bits; the permutation puts the quarters back in order.
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words[0], words[1]), 0b11011000);
  const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(packed), _mm256_extracti128_si256(packed, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
}

FORELOAD_AVX2 void avx2_column(const ColumnResize& job) {
  for (std::size_t at = 0; at < job.bytes; at += 2 * kChunk) {
    Sums sums[2] = {};
    for (std::uint32_t i = 0; i < job.count; i += 2) {
      const RowPair rows = row_pair(job, i);
      add_chunk(rows, at, sums[0]);
      add_chunk(rows, at + kChunk, sums[1]);
    }
    store_chunk(sums[0], job.out + at);
    store_chunk(sums[1], job.out + at + kChunk);
  }
}

constexpr ResizeKernels kAvx2{"avx2", avx2_row, avx2_column};

}  // namespace

const ResizeKernels* avx2_resize_kernels() {
  return __builtin_cpu_supports("avx2") ? &kAvx2 : nullptr;
}

}  // namespace foreload

#else

namespace foreload {

const ResizeKernels* avx2_resize_kernels() {
  return nullptr;
}

}  // namespace foreload

#endif
