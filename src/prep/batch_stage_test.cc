#include "prep/batch_stage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "prep/chain.h"
#include "prep/fixed_point.h"
#include "prep/output.h"

namespace foreload {
namespace {

TensorSpec spec_of(DType dtype, std::vector<std::uint64_t> shape) {
  return {dtype, std::move(shape)};
}

// A batch of `count` tensors of T, all elements of sample i equal to value(i).
template <typename T>
struct Batched {
  explicit Batched(std::uint64_t count, const TensorSpec& spec) : tensor(spec), labels(count), mixes(count) {
    std::iota(labels.begin(), labels.end(), 100);
    elements.resize(count * spec.bytes() / sizeof(T));
  }
  std::size_t each() const { return tensor.bytes() / sizeof(T); }
  std::span<T> sample(std::size_t i) { return std::span(elements).subspan(i * each(), each()); }
  void fill(std::size_t i, T value) { std::fill(sample(i).begin(), sample(i).end(), value); }
  void mix(MixKind kind, double alpha, Position first, std::uint64_t samples, Layout layout = Layout::kNchw) {
    std::vector<Position> positions(labels.size());
    std::iota(positions.begin(), positions.end(), first);
    mix_pairs({.seed = 3,
               .epoch = 1,
               .positions = positions,
               .samples = samples,
               .count = labels.size(),
               .sample_bytes = tensor.bytes(),
               .tensors = std::as_writable_bytes(std::span(elements)),
               .labels = labels,
               .mixes = mixes},
              {kind, to_q32(alpha), 2}, tensor, layout);
  }

  TensorSpec tensor;
  std::vector<T> elements;
  std::vector<std::int64_t> labels;
  std::vector<Mix> mixes;
};

TEST(RaggedTest, SamplesAreMovedTogetherAndLengthsBecomeOffsets) {
  std::vector<std::uint16_t> values{1, 2, 0, 0, 0, 0, 0, 0, 3, 4, 5, 6, 7, 0, 0, 0};
  std::vector<std::uint64_t> offsets{9, 2, 0, 4, 1};
  compact_ragged(
      {.count = 4, .sample_bytes = 8, .tensors = std::as_writable_bytes(std::span(values)), .offsets = offsets}, 2);
  EXPECT_EQ(offsets, (std::vector<std::uint64_t>{0, 2, 2, 6, 7}));
  values.resize(7);
  EXPECT_EQ(values, (std::vector<std::uint16_t>{1, 2, 3, 4, 5, 6, 7}));
}

// They stand in shared memory.
TEST(RaggedTest, LengthsThatCanNotBeStayInsideOfTheTensors) {
  std::vector<std::uint16_t> values{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<std::uint64_t> offsets{0, ~std::uint64_t{0}, std::uint64_t{1} << 63};
  compact_ragged(
      {.count = 2, .sample_bytes = 8, .tensors = std::as_writable_bytes(std::span(values)), .offsets = offsets}, 2);
  EXPECT_EQ(offsets, (std::vector<std::uint64_t>{0, 4, 8}));
  EXPECT_EQ(values, (std::vector<std::uint16_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(MixupTest, BothOfAPairAreMixedWithTheSameShare) {
  Batched<float> batch(4, spec_of(DType::kF32, {3, 2, 2}));
  for (std::size_t i = 0; i < 4; ++i) batch.fill(i, static_cast<float>(i + 1));
  batch.mix(MixKind::kMixup, 1.0, 6, 100);
  for (std::size_t i = 0; i < 4; ++i) {
    const float own = static_cast<float>(i + 1);
    const float other = static_cast<float>((i ^ 1) + 1);
    const float share = batch.mixes[i].own_share;
    EXPECT_EQ(batch.mixes[i].other_label, batch.labels[i ^ 1]);
    EXPECT_EQ(batch.mixes[i].own_share, batch.mixes[i ^ 1].own_share);
    EXPECT_EQ(batch.sample(i)[7], share * own + (1 - share) * other);
  }
  EXPECT_NE(batch.mixes[0].own_share, batch.mixes[2].own_share);
}

TEST(MixupTest, EveryTypeGivesTheSamePictureWithinItsPrecision) {
  Batched<float> floats(2, spec_of(DType::kF32, {3, 16, 16}));
  Batched<std::uint16_t> halves(2, spec_of(DType::kF16, {3, 16, 16}));
  Batched<std::uint8_t> bytes(2, spec_of(DType::kU8, {3, 16, 16}));
  for (std::size_t i = 0; i < floats.elements.size(); ++i) {
    bytes.elements[i] = static_cast<std::uint8_t>(i * 37 % 256);
    floats.elements[i] = bytes.elements[i];
    halves.elements[i] = to_half(floats.elements[i]);
  }
  for (auto* mixes : {&floats.mixes, &halves.mixes, &bytes.mixes}) EXPECT_EQ(mixes->size(), 2u);
  floats.mix(MixKind::kMixup, 4.0, 0, 2);
  halves.mix(MixKind::kMixup, 4.0, 0, 2);
  bytes.mix(MixKind::kMixup, 4.0, 0, 2);
  EXPECT_EQ(floats.mixes, halves.mixes);
  EXPECT_EQ(floats.mixes, bytes.mixes);
  for (std::size_t i = 0; i < floats.elements.size(); ++i) {
    ASSERT_EQ(halves.elements[i], to_half(floats.elements[i])) << i;
    ASSERT_LE(std::abs(bytes.elements[i] - floats.elements[i]), 0.51f) << i;
  }
}

TEST(MixupTest, HalvesOfEverySizeAreRoundedAsOutputRoundsThem) {
  Batched<float> floats(2, spec_of(DType::kF32, {3, 200, 100}));
  Batched<std::uint16_t> halves(2, spec_of(DType::kF16, {3, 200, 100}));
  for (std::size_t i = 0; i < floats.elements.size(); ++i) {  // exact in both, down to the subnormal
    const int sign = i % 3 == 0 ? -1 : 1;
    floats.elements[i] =
        std::ldexp(static_cast<float>(sign * static_cast<int>(i * 7919 % 2048)), -24 + static_cast<int>(i % 29));
    halves.elements[i] = to_half(floats.elements[i]);
  }
  floats.mix(MixKind::kMixup, 1.0, 4, 100);
  halves.mix(MixKind::kMixup, 1.0, 4, 100);
  for (std::size_t i = 0; i < floats.elements.size(); ++i) {
    ASSERT_EQ(halves.elements[i], to_half(floats.elements[i])) << floats.elements[i];
  }
}

TEST(MixTest, WhatHasNoPartnerStaysAsItIs) {
  for (const MixKind kind : {MixKind::kMixup, MixKind::kCutmix}) {
    Batched<float> batch(5, spec_of(DType::kF32, {3, 4, 4}));
    for (std::size_t i = 0; i < 5; ++i) batch.fill(i, static_cast<float>(i + 1));
    batch.mix(kind, 30.0, 10, 13);  // position 13 is the first of the padding, 14 is alone
    EXPECT_LT(batch.mixes[0].own_share, 1);
    for (const std::size_t i : {2, 3, 4}) {
      EXPECT_EQ(batch.mixes[i], (Mix{batch.labels[i], 1.0f})) << i;
      for (const float element : batch.sample(i)) ASSERT_EQ(element, static_cast<float>(i + 1));
    }
  }
}

TEST(CutmixTest, ABoxOfTheStatedAreaIsSwapped) {
  for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
    const bool planes = layout == Layout::kNchw;
    for (Position first = 0; first < 200; first += 2) {
      using Shape = std::vector<std::uint64_t>;
      Batched<std::uint8_t> batch(2, spec_of(DType::kU8, planes ? Shape{3, 9, 14} : Shape{9, 14, 3}));
      batch.fill(0, 10);
      batch.fill(1, 20);
      batch.mix(MixKind::kCutmix, 1.0, first, 1000, layout);
      std::size_t swapped = 0;
      std::size_t low_x = 99, high_x = 0, low_y = 99, high_y = 0;
      for (std::size_t y = 0; y < 9; ++y) {
        for (std::size_t x = 0; x < 14; ++x) {
          const std::size_t place = planes ? y * 14 + x : (y * 14 + x) * 3;
          const bool is_other = batch.sample(0)[place] == 20;
          for (std::size_t c = 0; c < 3; ++c) {
            const std::size_t at = place + c * (planes ? 126 : 1);
            ASSERT_EQ(batch.sample(0)[at], is_other ? 20 : 10);
            ASSERT_EQ(batch.sample(1)[at], is_other ? 10 : 20);
          }
          if (!is_other) continue;
          ++swapped;
          low_x = std::min(low_x, x), high_x = std::max(high_x, x), low_y = std::min(low_y, y),
          high_y = std::max(high_y, y);
        }
      }
      if (swapped > 0) {
        EXPECT_EQ(swapped, (high_x - low_x + 1) * (high_y - low_y + 1)) << "a full box";
      }
      EXPECT_FLOAT_EQ(batch.mixes[0].own_share, 1 - static_cast<float>(swapped) / 126);
    }
  }
}

std::string refusal(const std::string& text) {
  auto transforms = parse_chain(text);
  if (!transforms) return transforms.error().message;
  const auto chain = Chain::compile({.transforms = std::move(*transforms)});
  return chain.ok() ? "accepted" : chain.error().message;
}

TEST(MixTest, OnlyTheEndOfAnImageChainMayMix) {
  EXPECT_EQ(refusal("center_crop(8), normalize, mixup(0.2)"), "accepted");
  EXPECT_EQ(refusal("center_crop(8), cutmix"), "accepted");
  EXPECT_NE(refusal("center_crop(8), mixup, normalize").find("put one of these last"), std::string::npos);
  EXPECT_NE(refusal("center_crop(8), mixup, cutmix").find("put one of these last"), std::string::npos);
  EXPECT_NE(refusal("array(f32, 3:8:8), mixup").find("not arrays"), std::string::npos);
  EXPECT_NE(refusal("center_crop(8), mixup(0)").find("from 0.01"), std::string::npos);
}

}  // namespace
}  // namespace foreload
