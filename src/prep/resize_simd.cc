// The loops with Highway, compiled once per instruction set. Multiply-add of 16-bit pairs is the cheap instruction,
// but weights have 22 bits. Along x every sum is kept twice, with the low 15 bits of the weights and with the rest:
//
//   a block of 128 bits = one place   [r0 r1 g0 g1 b0 b1 x0 x1] · [w0 w1 w0 w1 …]     two taps per multiplication
//   four vectors = a chunk of places  vector j, block b = place 4b + j, so that a transposition of 4 × 4 words inside
//                                     the blocks gives R, G, B of neighbouring places
//
// Along y planes hold p and p · 2^7 side by side and weights are split likewise: one multiplication per tap.
// What is narrower than a vector goes to the plain loops; a row's end is made by a vector that overlaps the last one.
#ifndef HWY_DISABLED_TARGETS
// SSSE3 without SSE4 is extinct; vectors of unknown length have no fixed number of lanes to lay weights out for.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "prep/resize_simd.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "prep/resize_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace foreload {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

const PixelKernels* kernels() {
  return &plain_kernels();
}

#else

namespace {

namespace hn = hwy::HWY_NAMESPACE;

// 256 bits, even where there are 512: between libjpeg's rows of 256-bit code the wider ones gained nothing.
using D32 = hn::CappedTag<std::int32_t, kMostLanes>;
using DF = hn::Rebind<float, D32>;
using DU = hn::Rebind<std::uint32_t, D32>;
using D16 = hn::Repartition<std::int16_t, D32>;
using D8 = hn::Repartition<std::uint8_t, D32>;
using D64 = hn::Repartition<std::uint64_t, D32>;
using V32 = hn::Vec<D32>;
using V16 = hn::Vec<D16>;
using V8 = hn::Vec<D8>;
using VF = hn::Vec<DF>;

constexpr std::size_t kLanes = hn::MaxLanes(D32());
constexpr std::size_t kBlocks = kLanes / 4;
constexpr std::size_t kChannels = 3;
constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);

struct Rgb {
  V32 r, g, b;
};

// The sum of both products of every pair.
struct PairSum {
  V32 even_or_all;
  V32 odd = hn::Zero(D32());

  HWY_INLINE void add(V16 a, V16 b) { even_or_all = hn::ReorderWidenMulAccumulate(D32(), a, b, even_or_all, odd); }
  HWY_INLINE V32 get() const { return hn::RearrangeToOddPlusEven(even_or_all, odd); }
};

// --- along x

struct InPointers {
  const std::uint8_t* of_block[kBlocks];
};

// The blocks first … first + d's - 1.
template <typename D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const InPointers& in, std::size_t first, std::size_t offset) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    return hn::LoadU(d, in.of_block[first] + offset);
  } else {
    const hn::Half<D> half;
    const auto lower = load_blocks(half, in, first, offset);
    return hn::Combine(d, load_blocks(half, in, first + hn::MaxLanes(half) / 16, offset), lower);
  }
}

// The first two and the last two taps of a group, as pairs of each channel.
struct TapPairs {
  V16 first, last;

  HWY_INLINE explicit TapPairs(V8 pixels) {
    HWY_ALIGN static constexpr std::uint8_t kFirst[16] = {0, 128, 4, 128, 1, 128, 5, 128,
                                                          2, 128, 6, 128, 3, 128, 7, 128};
    HWY_ALIGN static constexpr std::uint8_t kLast[16] = {8,  128, 12, 128, 9,  128, 13, 128,
                                                         10, 128, 14, 128, 11, 128, 15, 128};
    first = hn::BitCast(D16(), hn::TableLookupBytesOr0(pixels, hn::LoadDup128(D8(), kFirst)));
    last = hn::BitCast(D16(), hn::TableLookupBytesOr0(pixels, hn::LoadDup128(D8(), kLast)));
  }
};

// Sums of one place per block, not yet rounded and shifted.
HWY_INLINE V32 place_sums(const InPointers& in, const std::uint32_t* weights, std::uint32_t groups) {
  PairSum low{hn::Zero(D32())}, high{hn::Zero(D32())};
  for (std::uint32_t group = 0; group < groups; ++group) {
    const TapPairs taps(load_blocks(D8(), in, 0, std::size_t{group} * 16));
    const V32 all = hn::BitCast(D32(), hn::LoadU(DU(), weights + group * kLanes));
    low.add(taps.first, hn::BitCast(D16(), hn::Broadcast<0>(all)));
    low.add(taps.last, hn::BitCast(D16(), hn::Broadcast<1>(all)));
    high.add(taps.first, hn::BitCast(D16(), hn::Broadcast<2>(all)));
    high.add(taps.last, hn::BitCast(D16(), hn::Broadcast<3>(all)));
  }
  return hn::Add(low.get(), hn::ShiftLeft<RowWeights::kLowBits>(high.get()));
}

// Four vectors of places [r g b x] become three of neighbouring places.
HWY_INLINE Rgb transposed(V32 p0, V32 p1, V32 p2, V32 p3) {
  const D32 d;
  const D64 pairs;
  const auto rg01 = hn::BitCast(pairs, hn::InterleaveLower(d, p0, p1));
  const auto bx01 = hn::BitCast(pairs, hn::InterleaveUpper(d, p0, p1));
  const auto rg23 = hn::BitCast(pairs, hn::InterleaveLower(d, p2, p3));
  const auto bx23 = hn::BitCast(pairs, hn::InterleaveUpper(d, p2, p3));
  return {hn::BitCast(d, hn::InterleaveLower(pairs, rg01, rg23)),
          hn::BitCast(d, hn::InterleaveUpper(pairs, rg01, rg23)),
          hn::BitCast(d, hn::InterleaveLower(pairs, bx01, bx23))};
}

HWY_INLINE void store_spread(V32 pixels, std::uint32_t* out) {
  const DU d;
  hn::StoreU(hn::BitCast(d, hn::Or(pixels, hn::ShiftLeft<16 + kPairBits>(pixels))), d, out);
}

HWY_INLINE void store_planes(const Rgb& pixels, const Planes& out, std::size_t at) {
  store_spread(pixels.r, out.data + at);
  store_spread(pixels.g, out.data + out.stride + at);
  store_spread(pixels.b, out.data + 2 * out.stride + at);
}

HWY_INLINE Rgb shifted(const Rgb& sums) {
  return {hn::ShiftRight<kWeightBits>(sums.r), hn::ShiftRight<kWeightBits>(sums.g),
          hn::ShiftRight<kWeightBits>(sums.b)};
}

// `kGroups` is the number of groups, or 0 when it is only known at run time.
template <std::uint32_t kGroups>
HWY_INLINE void resize_row(const RowResize& job) {
  const std::uint32_t groups = kGroups != 0 ? kGroups : job.weights.groups;
  const std::size_t step = std::size_t{groups} * kLanes;
  const std::uint32_t* weights = job.weights.words.data();
  const std::uint32_t* first = job.weights.first.data();
  const std::size_t places = job.weights.first.size();
  const std::uint8_t* in = job.in;
  const Planes out = job.out;
  const auto sums = [&](std::size_t j) HWY_ATTR {
    InPointers blocks;
    for (std::size_t b = 0; b < kBlocks; ++b) blocks.of_block[b] = in + first[4 * b + j];
    return place_sums(blocks, weights + j * step, groups);
  };
  const V32 half = hn::Set(D32(), kHalf);
  for (std::size_t place = 0; place < places; place += kLanes, first += kLanes, weights += 4 * step) {
    const Rgb rgb = transposed(sums(0), sums(1), sums(2), sums(3));
    store_planes(shifted({hn::Add(rgb.r, half), hn::Add(rgb.g, half), hn::Add(rgb.b, half)}), out, place);
  }
}

void row(const RowResize& job) {
  if (job.weights.groups == 1) return resize_row<1>(job);  // four taps: shrinking to no less than half
  resize_row<0>(job);
}

// --- where pixels come from, a vector at a time

struct FromColumn {
  const ColumnResize& job;

  HWY_INLINE Rgb at(std::size_t x) const {
    const DU d;
    const V32 half = hn::Set(D32(), kHalf);
    PairSum r{half}, g{half}, b{half};
    for (std::uint32_t i = 0; i < job.count; ++i) {
      const std::uint32_t* in = job.rows[i] + x;
      const V16 weight = hn::BitCast(D16(), hn::Set(d, job.weights[i]));
      r.add(hn::BitCast(D16(), hn::LoadU(d, in)), weight);
      g.add(hn::BitCast(D16(), hn::LoadU(d, in + job.stride)), weight);
      b.add(hn::BitCast(D16(), hn::LoadU(d, in + 2 * job.stride)), weight);
    }
    return shifted({r.get(), g.get(), b.get()});
  }
};

template <bool kMirrored>
struct FromRow {
  const std::uint8_t* in;
  std::size_t width;

  HWY_INLINE Rgb at(std::size_t x) const {
    const std::size_t first = kMirrored ? width - kLanes - x : x;
    V32 pixels = hn::BitCast(D32(), hn::LoadU(D8(), in + first * kPixelBytes));
    if constexpr (kMirrored) pixels = hn::Reverse(D32(), pixels);
    const V32 byte = hn::Set(D32(), 255);
    return {hn::And(pixels, byte), hn::And(hn::ShiftRight<8>(pixels), byte), hn::And(hn::ShiftRight<16>(pixels), byte)};
  }
};

// --- and where they go

struct ToPixels {
  std::uint8_t* out;

  HWY_INLINE void put(const Rgb& pixels, std::size_t x) const {
    const V32 all = hn::Or(pixels.r, hn::Or(hn::ShiftLeft<8>(pixels.g), hn::ShiftLeft<16>(pixels.b)));
    hn::StoreU(hn::BitCast(D8(), all), D8(), out + x * kPixelBytes);
  }
};

struct ToPlanes {
  Planes out;

  HWY_INLINE void put(const Rgb& pixels, std::size_t x) const { store_planes(pixels, out, x); }
};

// What a pixel's value becomes.
struct AsU8 {
  using D = hn::Rebind<std::uint8_t, D32>;

  HWY_INLINE explicit AsU8(const OutputTables&) {}
  template <std::size_t kChannel>
  HWY_INLINE hn::Vec<D> element(V32 value) const {
    return hn::DemoteTo(D(), value);
  }
};

HWY_INLINE VF divided(VF x, const Reciprocal& by, float divisor) {
#if HWY_NATIVE_FMA
  (void)divisor;
  return hn::MulAdd(x, hn::Set(DF(), by.high), hn::Mul(x, hn::Set(DF(), by.low)));
#else
  (void)by;
  return hn::Div(x, hn::Set(DF(), divisor));
#endif
}

struct AsF32 {
  using D = DF;
  const OutputTables& tables;

  HWY_INLINE explicit AsF32(const OutputTables& from) : tables(from) {}
  template <std::size_t kChannel>
  HWY_INLINE VF element(V32 value) const {
    const VF share = divided(hn::ConvertTo(DF(), value), tables.by_255, 255.0f);
    const VF centred = hn::Sub(share, hn::Set(DF(), tables.mean[kChannel]));
    return divided(centred, tables.by_std[kChannel], tables.std[kChannel]);
  }
};

struct AsF16 {
  using D = hn::Rebind<std::uint16_t, D32>;
  AsF32 full;

  HWY_INLINE explicit AsF16(const OutputTables& tables) : full(tables) {}
  template <std::size_t kChannel>
  HWY_INLINE hn::Vec<D> element(V32 value) const {
    return hn::BitCast(D(), hn::DemoteTo(hn::Rebind<hwy::float16_t, D32>(), full.element<kChannel>(value)));
  }
};

// kPast: past the caches, since a batch is larger than they are and nobody reads it soon. REQUIRES: aligned vectors.
enum class Store { kThrough, kPast };

template <typename As, Layout kLayout, Store kStore = Store::kThrough>
struct ToTensor {
  using T = hn::TFromD<typename As::D>;
  As as;
  T* out;
  std::size_t plane;

  HWY_INLINE explicit ToTensor(const TensorRow& row)
      : as(row.tables), out(reinterpret_cast<T*>(row.out)), plane(row.plane) {}

  HWY_INLINE void put(const Rgb& pixels, std::size_t x) const {
    const typename As::D d;
    const auto r = as.template element<0>(pixels.r);
    const auto g = as.template element<1>(pixels.g);
    const auto b = as.template element<2>(pixels.b);
    if constexpr (kStore == Store::kPast) {
      hn::Stream(r, d, out + x);
      hn::Stream(g, d, out + plane + x);
      hn::Stream(b, d, out + 2 * plane + x);
    } else if constexpr (kLayout == Layout::kNchw) {
      hn::StoreU(r, d, out + x);
      hn::StoreU(g, d, out + plane + x);
      hn::StoreU(b, d, out + 2 * plane + x);
    } else {
      hn::StoreInterleaved3(r, g, b, d, out + kChannels * x);
    }
  }
};

// REQUIRES: width >= kLanes.
template <typename From, typename To>
HWY_INLINE void move_row(const From& from, const To& to, std::size_t width) {
  std::size_t x = 0;
  for (; x + kLanes <= width; x += kLanes) to.put(from.at(x), x);
  if (x < width) to.put(from.at(width - kLanes), width - kLanes);
}

// Whether all vectors of a row of f32 planes are aligned.
bool is_aligned(const TensorRow& row, std::size_t width) {
  constexpr std::size_t kVector = kLanes * sizeof(float);
  return width % kLanes == 0 && row.plane * sizeof(float) % kVector == 0 &&
         reinterpret_cast<std::uintptr_t>(row.out) % kVector == 0;
}

template <typename As, typename From>
HWY_INLINE void move_as(const From& from, const TensorRow& row, std::size_t width) {
  if (std::is_same_v<As, AsF32> && row.tables.layout == Layout::kNchw && is_aligned(row, width)) {
    move_row(from, ToTensor<AsF32, Layout::kNchw, Store::kPast>(row), width);
  } else if (row.tables.layout == Layout::kNchw) {
    move_row(from, ToTensor<As, Layout::kNchw>(row), width);
  } else {
    move_row(from, ToTensor<As, Layout::kNhwc>(row), width);
  }
}

template <typename From>
HWY_INLINE void move_to_tensor(const From& from, const TensorRow& row, std::size_t width) {
  if (row.tables.dtype == DType::kF32) move_as<AsF32>(from, row, width);
  if (row.tables.dtype == DType::kF16) move_as<AsF16>(from, row, width);
  if (row.tables.dtype == DType::kU8) move_as<AsU8>(from, row, width);
}

void split(const RowSplit& job) {
  if (job.width < kLanes) return plain_kernels().split(job);
  if (job.mirrored) {
    move_row(FromRow<true>{job.in, job.width}, ToPlanes{job.out}, job.width);
  } else {
    move_row(FromRow<false>{job.in, job.width}, ToPlanes{job.out}, job.width);
  }
}

void column(const ColumnResize& job, std::uint8_t* out) {
  if (job.width < kLanes) return plain_kernels().column(job, out);
  move_row(FromColumn{job}, ToPixels{out}, job.width);
}

void column_to_tensor(const ColumnResize& job, const TensorRow& row) {
  if (job.width < kLanes) return plain_kernels().column_to_tensor(job, row);
  move_to_tensor(FromColumn{job}, row, job.width);
}

void write(const RowWrite& job, const TensorRow& row) {
  if (job.width < kLanes) return plain_kernels().write(job, row);
  if (job.mirrored) {
    move_to_tensor(FromRow<true>{job.in, job.width}, row, job.width);
  } else {
    move_to_tensor(FromRow<false>{job.in, job.width}, row, job.width);
  }
}

void flush() {
  hwy::FlushStream();
}

}  // namespace

const PixelKernels* kernels() {
  static const PixelKernels kKernels{.name = hwy::TargetName(HWY_TARGET),
                                     .lanes = kLanes,
                                     .row = row,
                                     .split = split,
                                     .column = column,
                                     .column_to_tensor = column_to_tensor,
                                     .write = write,
                                     .flush = flush};
  return &kKernels;
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace foreload
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace foreload {

HWY_EXPORT(kernels);

const PixelKernels& pixel_kernels() {
  return *HWY_DYNAMIC_DISPATCH(kernels)();
}

}  // namespace foreload
#endif
