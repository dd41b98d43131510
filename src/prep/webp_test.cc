#include "prep/webp.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "prep/test_pictures.h"
#include "prep/webp_samples.h"

namespace foreload {
namespace {

TEST(WebpTest, EveryBoxEqualsTheSamePartOfTheFullDecode) {
  constexpr std::uint64_t kSeed = 31;
  const auto decoder = make_webp_decoder();
  const auto kinds = webp_kinds();
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", kind " << kind << ", lossless " << kinds[kind].lossless
                                    << ", alpha " << kinds[kind].alpha << ", " << kinds[kind].width << "x"
                                    << kinds[kind].height << ", simple " << kinds[kind].simple_filter);
    const auto webp = make_webp(kinds[kind]);
    const auto full = decode_picture(*decoder, webp);
    ASSERT_TRUE(full) << full.error().message;
    KeyedRandom random(kSeed, 0, kind, 0);
    for (int i = 0; i < 40; ++i) {
      Box box;
      box.x = static_cast<std::uint32_t>(random.below(full->size.width));
      box.y = static_cast<std::uint32_t>(random.below(full->size.height));
      box.width = static_cast<std::uint32_t>(1 + random.below(full->size.width - box.x));
      box.height = static_cast<std::uint32_t>(1 + random.below(full->size.height - box.y));
      const auto part = decode_picture(*decoder, webp, box);
      ASSERT_TRUE(part) << part.error().message;
      ASSERT_EQ(part->rgb, cut_out(*full, box).rgb) << box.x << "," << box.y << " " << box.width << "x" << box.height;
    }
  }
}

TEST(WebpTest, AlphaIsDroppedAndNotBlended) {
  const auto decoder = make_webp_decoder();
  const auto opaque = decode_picture(*decoder, make_webp({.lossless = true}));
  const auto holed = decode_picture(*decoder, make_webp({.lossless = true, .alpha = true}));
  ASSERT_TRUE(opaque && holed);
  EXPECT_EQ(opaque->rgb, holed->rgb);
}

TEST(WebpTest, CutOffFileIsRefusedAtEveryLength) {
  const auto decoder = make_webp_decoder();
  for (const bool lossless : {false, true}) {
    const auto webp = make_webp({.lossless = lossless, .alpha = true});
    for (std::size_t length = 12; length < webp.size(); length += 7) {
      const auto picture = decode_picture(*decoder, std::span(webp).first(length));
      ASSERT_FALSE(picture) << length << " of " << webp.size();
      EXPECT_EQ(picture.error().code, Code::kBadSample);
    }
  }
}

TEST(WebpTest, MutatedFilesAreRefusedOrDecodedTheSameTwice) {
  constexpr std::uint64_t kSeed = 77;
  const auto decoder = make_webp_decoder();
  std::vector<std::vector<std::byte>> files;
  for (const WebpSpec& kind : webp_kinds()) files.push_back(make_webp(kind));
  for (unsigned round = 0; round < test_amount(10'000); ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", round " << round);
    KeyedRandom random(kSeed, 0, round, 0);
    auto webp = files[random.below(files.size())];
    for (std::uint64_t i = 1 + random.below(4); i > 0; --i) {
      webp[12 + random.below(webp.size() - 12)] = static_cast<std::byte>(random.below(256));
    }
    const auto size = decoder->open(webp, {.pixels = 1 << 20});
    if (!size) continue;
    const auto first = decode_picture(*decoder, webp);
    const auto second = decode_picture(*decoder, webp);
    ASSERT_EQ(first.ok(), second.ok());
    if (first) {
      ASSERT_EQ(first->rgb, second->rgb);
    } else {
      ASSERT_EQ(first.error().code, Code::kBadSample) << first.error().message;
    }
  }
}

TEST(WebpTest, LimitsHoldAfterTheHeader) {
  const auto decoder = make_webp_decoder();
  const auto webp = make_webp({.width = 100, .height = 100});
  EXPECT_TRUE(decoder->open(webp, {.pixels = 10'000}));
  EXPECT_FALSE(decoder->open(webp, {.pixels = 9'999}));
}

TEST(WebpTest, DimensionsComeFromTheHeader) {
  const auto webp = make_webp({.width = 12, .height = 34});
  const auto size = webp_dimensions(std::span(webp).first(30));
  ASSERT_TRUE(size) << size.error().message;
  EXPECT_EQ(size->width, 12u);
  EXPECT_EQ(size->height, 34u);
}

TEST(WebpTest, AnimationIsRefusedWithTheReason) {
  // An extended header with the animation flag; libwebp believes it.
  const char header[] = "RIFF\x28\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\x0f\0\0\x0f\0\0ANIM\x06\0\0\0\0\0\0\0\0\0";
  const auto bytes = std::as_bytes(std::span(header, sizeof header - 1));
  ASSERT_TRUE(is_webp(bytes));
  const auto size = make_webp_decoder()->open(bytes, Limits{});
  ASSERT_FALSE(size);
  EXPECT_NE(size.error().message.find("animation"), std::string::npos) << size.error().message;
}

TEST(WebpTest, SmallBoxOfALossyPictureTakesLittleMemory) {
  const auto decoder = make_webp_decoder();
  const auto webp = make_webp({.width = 1000, .height = 800});
  ASSERT_TRUE(decoder->open(webp, Limits{}));
  const DecodeMemory small = decoder->memory({100, 100, 50, 50});
  EXPECT_LT(small.scratch + small.library, 512_KiB);
  EXPECT_GE(decoder->memory({0, 0, 1000, 800}).scratch, 1000u * 800 * 4);
}

}  // namespace
}  // namespace foreload
