#include "prep/jpeg_cut.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "prep/chain.h"
#include "prep/jpeg.h"
#include "prep/jpeg_markers.h"
#include "prep/jpeg_samples.h"
#include "prep/test_pictures.h"

namespace foreload {
namespace {

using Sample = std::vector<std::byte>;
constexpr std::uint64_t kSeed = 8152;

Box random_box(Dimensions size, std::uint32_t mcu, KeyedRandom& random) {
  const auto side = [&](std::uint32_t whole, std::uint32_t& first, std::uint32_t& length) {
    first = static_cast<std::uint32_t>(random.below(whole));
    if (random.below(3) == 0) first = first / mcu * mcu;
    auto end = first + 1 + static_cast<std::uint32_t>(random.below(whole - first));
    if (random.below(3) == 0) end = std::min((end + mcu - 1) / mcu * mcu, whole);
    length = end - first;
  };
  Box box;
  side(size.width, box.x, box.width);
  side(size.height, box.y, box.height);
  return box;
}

std::string text_of(const Box& box) {
  return testing::PrintToString(std::vector{box.x, box.y, box.width, box.height});
}

// Of the picture at eighths/8, from the cut.
Result<Picture> decode_cut(ImageDecoder& decoder, const Sample& cut, const CutHint& hint, const Box& box,
                           std::uint32_t eighths = 8) {
  decoder.hint_rows({.cut = hint});
  FORELOAD_ASSIGN(const Dimensions size, decoder.open(cut, Limits{}));
  EXPECT_EQ(std::pair(size.width, size.height), std::pair(hint.picture.width, hint.picture.height));
  decoder.set_scale(eighths);
  std::vector<std::uint8_t> scratch(decoder.memory(box).scratch);
  FORELOAD_TRY(decoder.start(box, scratch));
  Picture picture{{box.width, box.height}, {}};
  for (std::uint32_t y = 0; y < box.height; ++y) {
    FORELOAD_ASSIGN(const std::uint8_t* row, decoder.next_row());
    for (std::uint32_t x = 0; x < box.width; ++x) {
      picture.rgb.insert(picture.rgb.end(), row + x * kPixelBytes, row + x * kPixelBytes + 3);
    }
  }
  return picture;
}

Result<Picture> decode_scaled(ImageDecoder& decoder, const Sample& jpeg, std::uint32_t eighths) {
  FORELOAD_ASSIGN(const Dimensions size, decoder.open(jpeg, Limits{}));
  decoder.set_scale(eighths);
  const Dimensions small = scaled(size, eighths);
  const Box box{0, 0, small.width, small.height};
  std::vector<std::uint8_t> scratch(decoder.memory(box).scratch);
  FORELOAD_TRY(decoder.start(box, scratch));
  Picture picture{small, {}};
  for (std::uint32_t y = 0; y < box.height; ++y) {
    FORELOAD_ASSIGN(const std::uint8_t* row, decoder.next_row());
    for (std::uint32_t x = 0; x < box.width; ++x) {
      picture.rgb.insert(picture.rgb.end(), row + x * kPixelBytes, row + x * kPixelBytes + 3);
    }
  }
  return picture;
}

TEST(JpegCutTest, EveryBoxOfACutEqualsTheFullDecodeAndMostAreCut) {
  const auto kinds = crop_addressable_kinds();
  const unsigned boxes = test_amount(5000) / static_cast<unsigned>(kinds.size()) + 1;
  const auto decoder = make_jpeg_decoder();
  unsigned cuts = 0;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    SCOPED_TRACE(to_text(kinds[kind]));
    const auto jpeg = make_jpeg(kinds[kind]);
    const auto layout = parse_jpeg_layout(jpeg);
    ASSERT_TRUE(layout);
    const auto full = decode_picture(*decoder, jpeg);
    ASSERT_TRUE(full);
    KeyedRandom random(kSeed, 0, kind, 0);
    for (unsigned i = 0; i < boxes; ++i) {
      const Box box = random_box(full->size, layout->mcu_width, random);
      const auto cut = cut_jpeg(jpeg, full->size, box);
      ASSERT_EQ(cut.has_value(), !covers_most(*layout, plan_jpeg_splice(*layout, box, 8))) << text_of(box);
      if (!cut) continue;
      ++cuts;
      ASSERT_LE(cut->size(), jpeg.size());
      const auto part = decode_cut(*decoder, *cut, {full->size, box}, box);
      ASSERT_TRUE(part) << part.error().message << text_of(box);
      ASSERT_EQ(part->rgb, cut_out(*full, box).rgb) << "seed " << kSeed << ", box " << i << ": " << text_of(box);
      ASSERT_FALSE(decoder->damaged());
      // A smaller box of it, too, where the cut has what lies beside it.
      const Box inner{box.x + box.width / 3, box.y + box.height / 3, (box.width + 2) / 3, (box.height + 2) / 3};
      const auto smaller = decode_cut(*decoder, *cut, {full->size, box}, inner);
      ASSERT_TRUE(smaller) << smaller.error().message << text_of(inner);
      ASSERT_EQ(smaller->rgb, cut_out(*full, inner).rgb) << text_of(inner);
    }
  }
  EXPECT_GT(cuts, boxes * kinds.size() / 2);
}

// A chain that decodes large crops at a fraction of their size asks for a box that holds both.
TEST(JpegCutTest, ScaledBoxesOfACutEqualTheScaledDecode) {
  const auto decoder = make_jpeg_decoder();
  unsigned decoded = 0;
  unsigned refused = 0;
  for (const auto& spec : crop_addressable_kinds()) {
    SCOPED_TRACE(to_text(spec));
    const auto jpeg = make_jpeg(spec);
    const auto size = decoder->open(jpeg, Limits{});
    ASSERT_TRUE(size);
    if (!decoder->can_scale()) continue;
    for (const std::uint32_t eighths : {4u, 2u, 1u}) {
      const auto full = decode_scaled(*decoder, jpeg, eighths);
      ASSERT_TRUE(full);
      KeyedRandom random(kSeed, 1, eighths, spec.width);
      for (unsigned i = 0; i < test_amount(200); ++i) {
        const Box box = random_box(full->size, 2 * eighths, random);
        const std::uint32_t step = 8 / eighths;
        const Box asked{box.x * step, box.y * step, std::min(box.width * step, size->width - box.x * step),
                        std::min(box.height * step, size->height - box.y * step)};
        const auto cut = cut_jpeg(jpeg, *size, asked);
        if (!cut) continue;
        const auto part = decode_cut(*decoder, *cut, {*size, asked}, box, eighths);
        if (!part) {  // so narrow that more is needed beside it
          ASSERT_EQ(part.error().code, Code::kBadSample);
          ASSERT_LE(box.width, 4u) << text_of(box);
          ++refused;
          continue;
        }
        ASSERT_EQ(part->rgb, cut_out(*full, box).rgb) << "seed " << kSeed << ", at " << eighths << ": " << text_of(box);
        ++decoded;
      }
    }
  }
  EXPECT_GT(decoded, 4 * refused);
}

TEST(JpegCutTest, OnlyCompleteCropAddressableFilesOfThatSizeAreCut) {
  const Box box{16, 16, 20, 20};
  const auto good = make_jpeg({.width = 200, .height = 120, .sampling = {2, 2, 1, 1, 1, 1}, .restart = 1});
  EXPECT_TRUE(cut_jpeg(good, {200, 120}, box));
  EXPECT_FALSE(cut_jpeg(good, {200, 121}, box)) << "the index means another picture";
  EXPECT_FALSE(cut_jpeg(good, {120, 200}, box));
  EXPECT_FALSE(cut_jpeg(good, {200, 120}, {0, 0, 200, 120})) << "all of it is wanted";
  for (const std::size_t missing : {1u, 2u, 50u, 1000u}) {
    EXPECT_FALSE(cut_jpeg(std::span(good).first(good.size() - missing), {200, 120}, box)) << missing;
  }
  // The last marker is far from the box, and yet the file is not whole without it.
  auto damaged = good;
  const auto runs = find_jpeg_runs(damaged);
  damaged[runs[runs.size() - 2] - 1] = std::byte{0};
  EXPECT_FALSE(cut_jpeg(damaged, {200, 120}, box));
  for (const auto& spec : jpeg_kinds()) {
    const auto jpeg = make_jpeg(spec);
    if (parse_jpeg_layout(jpeg)) continue;
    EXPECT_FALSE(cut_jpeg(jpeg, {spec.width, spec.height}, {0, 0, 1, 1})) << to_text(spec);
  }
  EXPECT_FALSE(cut_jpeg({}, {200, 120}, box));
}

// Wrong codes inside of a run: decoded as far as libjpeg can, and that is the same with and without the rest.
TEST(JpegCutTest, DamagedDataGivesTheSamePixels) {
  const auto decoder = make_jpeg_decoder();
  KeyedRandom random(kSeed, 2, 0, 0);
  unsigned complaints = 0;
  for (unsigned i = 0; i < test_amount(1000); ++i) {
    auto jpeg = make_jpeg({.width = 160, .height = 96, .sampling = {2, 2, 1, 1, 1, 1}, .restart = 2, .seed = i});
    const auto layout = parse_jpeg_layout(jpeg);
    ASSERT_TRUE(layout);
    for (int flips = 0; flips < 40; ++flips) {
      std::byte& byte = jpeg[layout->scan + random.below(jpeg.size() - layout->scan - 2)];
      if (byte != std::byte{0xff}) byte = static_cast<std::byte>(random.below(0xff));
    }
    const Dimensions size{160, 96};
    const Box box = random_box(size, 16, random);
    const auto cut = cut_jpeg(jpeg, size, box);
    if (!cut) continue;  // a marker was hit
    const auto whole = decode_picture(*decoder, jpeg, box);
    const bool damaged = decoder->damaged();
    const auto part = decode_cut(*decoder, *cut, {size, box}, box);
    ASSERT_EQ(whole.ok(), part.ok());
    ASSERT_EQ(damaged, decoder->damaged());
    complaints += damaged;
    if (!whole) continue;
    ASSERT_EQ(part->rgb, whole->rgb) << i;
  }
  EXPECT_GT(complaints, 0u);
}

TEST(JpegCutTest, ACutIsNeverTakenForThatOfAnotherBoxOrPicture) {
  const Dimensions size{320, 160};
  const Box box{65, 33, 30, 30};
  const auto jpeg = make_jpeg({.width = 320, .height = 160, .sampling = {2, 2, 1, 1, 1, 1}, .restart = 2});
  const auto cut = cut_jpeg(jpeg, size, box);
  ASSERT_TRUE(cut);
  const auto decoder = make_jpeg_decoder();
  const auto refused = [&](const CutHint& hint, const Box& wanted) {
    const auto part = decode_cut(*decoder, *cut, hint, wanted);
    return !part && part.error().code == Code::kBadSample;
  };
  EXPECT_FALSE(refused({size, box}, box));
  EXPECT_TRUE(refused({size, {65, 33, 60, 30}}, box)) << "a cut of another size";
  EXPECT_TRUE(refused({{310, 160}, {300, 33, 10, 30}}, {300, 33, 10, 30})) << "it would end with the picture";
  EXPECT_TRUE(refused({size, box}, {64, 33, 30, 30})) << "upsampling looks beyond the cut";
  EXPECT_TRUE(refused({size, box}, {0, 0, 320, 160}));
  EXPECT_TRUE(refused({size, {}}, box)) << "no box at all";
  EXPECT_TRUE(refused({size, {310, 33, 30, 30}}, box)) << "beyond the picture";
  EXPECT_TRUE(refused({size, {~0u, ~0u, 2, 2}}, box));
  EXPECT_TRUE(refused({{0, 0}, box}, box));
}

TEST(JpegCutTest, WhateverComesInsteadOfACutDoesNoHarm) {
  const Dimensions size{200, 120};
  const Box box{33, 17, 60, 40};
  const auto good = cut_jpeg(make_jpeg({.width = 200, .height = 120, .restart = 5}), size, box);
  ASSERT_TRUE(good);
  const auto decoder = make_jpeg_decoder();
  KeyedRandom random(kSeed, 3, 0, 0);
  for (unsigned i = 0; i < test_amount(10'000); ++i) {
    Sample bytes = *good;
    for (std::uint64_t flips = random.below(4); flips-- > 0;) {
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
    }
    if (random.below(4) == 0) bytes.resize(random.below(bytes.size()));
    const auto part = decode_cut(*decoder, bytes, {size, box}, box);
    ASSERT_TRUE(part || part.error().code == Code::kBadSample);
  }
}

// What a fetcher asks for is what a worker needs, at full size and at a fraction of it.
TEST(JpegCutTest, AChainPreparesTheCutOfItsForesightLikeTheWholeSample) {
  unsigned cuts = 0;
  for (const Decode decode : {Decode::kExact, Decode::kFast}) {
    const auto chain = Chain::compile({.transforms = {random_resized_crop(32), random_flip()}, .decode = decode});
    ASSERT_TRUE(chain);
    ChainRunner runner(*chain);
    CropForesight foresight(*chain);
    std::vector<std::byte> whole(chain->output().bytes());
    std::vector<std::byte> part(whole.size());
    for (unsigned i = 0; i < test_amount(600); ++i) {
      const JpegSpec spec{
          .width = 70 + i % 150,
          .height = 260 - i % 170,
          .sampling = i % 3 == 0 ? std::vector<unsigned>{} : std::vector<unsigned>{2, i % 3, 1, 1, 1, 1},
          .restart = 1,
          .seed = i};
      const auto jpeg = make_jpeg(spec);
      const PrepKey key{.seed = kSeed, .epoch = 1, .position = i};
      const Dimensions size{spec.width, spec.height};
      const auto box = foresight.box(size, key);
      ASSERT_TRUE(box);
      const auto cut = cut_jpeg(jpeg, size, *box);
      if (!cut) continue;
      ++cuts;
      ASSERT_TRUE(runner.begin(jpeg, key));
      ASSERT_TRUE(runner.finish(whole));
      const auto begun = runner.begin(*cut, key, {.cut = CutHint{size, *box}});
      ASSERT_TRUE(begun) << begun.error().message;
      const Status finished = runner.finish(part);
      ASSERT_TRUE(finished) << finished.error().message;
      ASSERT_EQ(part, whole) << i;
      EXPECT_EQ(runner.dimensions().width, size.width);
      EXPECT_EQ(runner.dimensions().height, size.height);
    }
  }
  EXPECT_GT(cuts, test_amount(600));
}

}  // namespace
}  // namespace foreload
