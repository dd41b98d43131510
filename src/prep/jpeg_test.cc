#include "prep/jpeg.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>

#include "base/random.h"
#include "prep/jpeg_markers.h"
#include "prep/jpeg_samples.h"
#include "prep/test_pictures.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSeed = 4711;

std::span<const std::byte> without_end(const std::vector<std::byte>& jpeg, std::size_t count) {
  return std::span(jpeg).first(jpeg.size() - count);
}

// Boxes with edges on and beside MCU boundaries, thin ones, and any.
Box random_box(Dimensions size, KeyedRandom& random) {
  const auto side = [&](std::uint32_t whole, std::uint32_t& first, std::uint32_t& length) {
    first = static_cast<std::uint32_t>(random.below(whole));
    if (random.below(2) == 0) first = std::min<std::uint32_t>(first / 8 * 8, whole - 1);
    const auto most = std::uint64_t{whole} - first;
    length =
        static_cast<std::uint32_t>(1 + random.below(random.below(3) == 0 ? std::min<std::uint64_t>(most, 4) : most));
    if (random.below(3) == 0) length = std::min<std::uint32_t>((length + 7) / 8 * 8, static_cast<std::uint32_t>(most));
  };
  Box box;
  side(size.width, box.x, box.width);
  side(size.height, box.y, box.height);
  return box;
}

TEST(JpegTest, EveryBoxEqualsTheSamePartOfTheFullDecode) {
  const auto kinds = jpeg_kinds();
  const unsigned boxes = test_amount(5000) / static_cast<unsigned>(kinds.size()) + 1;
  const auto decoder = make_jpeg_decoder();
  RecordProperty("seed", static_cast<int>(kSeed));
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    SCOPED_TRACE(to_text(kinds[kind]));
    const auto jpeg = make_jpeg(kinds[kind]);
    const auto full = decode_picture(*decoder, jpeg);
    ASSERT_TRUE(full) << full.error().message;
    KeyedRandom random(kSeed, 0, kind, 0);
    for (unsigned i = 0; i < boxes; ++i) {
      const Box box = random_box(full->size, random);
      const auto part = decode_picture(*decoder, jpeg, box);
      ASSERT_TRUE(part) << part.error().message;
      ASSERT_EQ(part->rgb, cut_out(*full, box).rgb) << "seed " << kSeed << ", box " << i << ": " << box.x << " "
                                                    << box.y << " " << box.width << " " << box.height;
    }
  }
}

// Where libjpeg would fall back to another upsampling because the cut is so narrow.
TEST(JpegTest, ThinBoxesAtTheRightEdgeEqualTheFullDecode) {
  const auto decoder = make_jpeg_decoder();
  for (const std::vector<unsigned>& sampling : {std::vector<unsigned>{2, 1, 1, 1, 1, 1}, {2, 2, 1, 1, 1, 1}}) {
    for (unsigned width = 33; width < 42; ++width) {
      const auto jpeg = make_jpeg({.width = width, .height = 17, .sampling = sampling});
      const auto full = decode_picture(*decoder, jpeg);
      ASSERT_TRUE(full);
      for (std::uint32_t x = 30; x < width; ++x) {
        const Box box{x, 5, width - x, 3};
        const auto part = decode_picture(*decoder, jpeg, box);
        ASSERT_TRUE(part);
        ASSERT_EQ(part->rgb, cut_out(*full, box).rgb) << width << " wide, from " << x;
      }
    }
  }
}

TEST(JpegTest, GrayIsTheSameInAllChannels) {
  const auto decoder = make_jpeg_decoder();
  const auto picture = decode_picture(*decoder, make_jpeg({.components = 1}));
  ASSERT_TRUE(picture);
  for (std::size_t i = 0; i < picture->rgb.size(); i += 3) {
    ASSERT_EQ(picture->rgb[i], picture->rgb[i + 1]);
    ASSERT_EQ(picture->rgb[i], picture->rgb[i + 2]);
  }
}

TEST(JpegTest, FileWithoutItsEndIsRefusedThoughTheBoxIsComplete) {
  const auto decoder = make_jpeg_decoder();
  for (const bool progressive : {false, true}) {
    const auto jpeg = make_jpeg({.width = 200, .height = 200, .progressive = progressive});
    for (const std::size_t missing : {1u, 2u, 500u}) {
      const auto picture = decode_picture(*decoder, without_end(jpeg, missing), {0, 0, 8, 8});
      ASSERT_FALSE(picture);
      EXPECT_EQ(picture.error().code, Code::kBadSample);
      EXPECT_NE(picture.error().message.find("cut off"), std::string::npos) << picture.error().message;
    }
  }
}

TEST(JpegTest, BytesAfterTheEndDoNotMatter) {
  const auto decoder = make_jpeg_decoder();
  auto jpeg = make_jpeg({});
  const auto before = decode_picture(*decoder, jpeg);
  jpeg.insert(jpeg.end(), 1000, std::byte{0x5a});
  const auto after = decode_picture(*decoder, jpeg);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->rgb, after->rgb);
  EXPECT_FALSE(decoder->damaged());
}

TEST(JpegTest, WrongDataInsideIsDecodedAndRemembered) {
  const auto decoder = make_jpeg_decoder();
  auto jpeg = make_jpeg({.width = 200, .height = 200});
  // The end of the image in the middle of its data: libjpeg fills the rest.
  jpeg[jpeg.size() / 2] = std::byte{0xff};
  jpeg[jpeg.size() / 2 + 1] = std::byte{0xd9};
  const auto picture = decode_picture(*decoder, jpeg);
  ASSERT_TRUE(picture) << picture.error().message;
  EXPECT_TRUE(decoder->damaged());
  ASSERT_TRUE(decode_picture(*decoder, make_jpeg({})));
  EXPECT_FALSE(decoder->damaged());
}

TEST(JpegTest, TwoComponentsAreRefused) {
  const auto decoder = make_jpeg_decoder();
  const auto picture = decode_picture(*decoder, make_jpeg({.components = 2}));
  ASSERT_FALSE(picture);
  EXPECT_NE(picture.error().message.find("2 colour components"), std::string::npos) << picture.error().message;
}

TEST(JpegTest, TwelveBitsAreRefused) {
  auto jpeg = make_jpeg({});
  const std::byte frame[] = {std::byte{0xff}, std::byte{0xc0}};
  const auto found = std::search(jpeg.begin(), jpeg.end(), std::begin(frame), std::end(frame));
  ASSERT_NE(found, jpeg.end());
  found[4] = std::byte{12};
  const auto decoder = make_jpeg_decoder();
  const auto picture = decode_picture(*decoder, jpeg);
  ASSERT_FALSE(picture);
  EXPECT_EQ(picture.error().code, Code::kBadSample);
}

TEST(JpegTest, DimensionsComeFromTheHeader) {
  for (const auto& spec : jpeg_kinds()) {
    const auto jpeg = make_jpeg(spec);
    const auto size = jpeg_dimensions(jpeg);
    ASSERT_TRUE(size);
    EXPECT_EQ(size->width, spec.width);
    EXPECT_EQ(size->height, spec.height);
  }
  EXPECT_FALSE(jpeg_dimensions(without_end(make_jpeg({}), make_jpeg({}).size() - 20)));
}

TEST(JpegTest, LimitsHoldAfterTheHeader) {
  const auto decoder = make_jpeg_decoder();
  const auto jpeg = make_jpeg({.width = 100, .height = 100, .progressive = true});
  EXPECT_TRUE(decoder->open(jpeg, {.pixels = 10'000}));
  EXPECT_FALSE(decoder->open(jpeg, {.pixels = 9'999}));
  EXPECT_FALSE(decoder->open(jpeg, {.scans = 3}));
}

TEST(JpegTest, LibraryAllocatesNoMoreThanWasSaid) {
  const auto in_use = [] {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  std::vector<JpegSpec> kinds = jpeg_kinds();
  for (const auto& spec : crop_addressable_kinds()) kinds.push_back(spec);
  kinds.push_back({.width = 3000, .height = 2000, .sampling = {2, 2, 1, 1, 1, 1}, .progressive = true});
  kinds.push_back({.width = 9000, .height = 40, .components = 4});
  kinds.push_back({.width = 9000, .height = 80, .components = 1, .sampling = {2, 2}, .restart = 1125});
  kinds.push_back({.width = 9000, .height = 80, .sampling = {2, 2, 1, 1, 1, 1}, .restart = 1});
  const auto decoder = make_jpeg_decoder();
  for (const auto& spec : kinds) {
    const auto jpeg = make_jpeg(spec);
    for (const std::uint32_t eighths : {8u, 7u, 5u, 4u, 1u}) {
      SCOPED_TRACE(to_text(spec) + ", eighths " + std::to_string(eighths));
      const auto size = decoder->open(jpeg, Limits{});
      ASSERT_TRUE(size);
      decoder->set_scale(eighths);
      const auto [width, height] = scaled(*size, eighths);
      const Box box{0, height - 1, width, 1};
      const DecodeMemory memory = decoder->memory(box);
      std::vector<std::uint8_t> scratch(memory.scratch);
      const std::size_t before = in_use();
      ASSERT_TRUE(decoder->start(box, scratch));
      ASSERT_TRUE(decoder->next_row());
      const std::size_t after = in_use();  // both are 0 under sanitizers
      decoder->close();
      EXPECT_LE(after, before + memory.library);
    }
  }
}

// libjpeg's own limit is the one way to run out of memory that also works under sanitizers.
TEST(JpegTest, TooLittleMemoryIsNotABadSample) {
  const auto jpeg = make_jpeg({.width = 600, .height = 600, .progressive = true});
  ASSERT_EQ(setenv("JPEGMEM", "1k", 1), 0);
  const auto decoder = make_jpeg_decoder();
  ASSERT_EQ(unsetenv("JPEGMEM"), 0);
  const auto picture = decode_picture(*decoder, jpeg);
  ASSERT_FALSE(picture);
  EXPECT_EQ(picture.error().code, Code::kNoMemory) << picture.error().message;
  EXPECT_NE(picture.error().message.find("600x600"), std::string::npos) << picture.error().message;
  const auto cut = decode_picture(*decoder, without_end(jpeg, 10));
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Code::kBadSample);
}

TEST(JpegMarkersTest, ScansAreCountedUpToTheLimit) {
  const auto jpeg = make_jpeg({.progressive = true});
  const std::byte sos[] = {std::byte{0xff}, std::byte{0xda}};
  const auto first = std::search(jpeg.begin(), jpeg.end(), std::begin(sos), std::end(sos));
  const std::span data(&*first + 14, &*jpeg.end());
  const JpegScans all = count_jpeg_scans(data, 500);
  EXPECT_EQ(all.count, 10u);  // libjpeg's simple progression of a colour picture
  EXPECT_TRUE(all.complete);
  EXPECT_EQ(count_jpeg_scans(data, 4).count, 5u);
  EXPECT_FALSE(count_jpeg_scans(data.first(data.size() - 1), 500).complete);
  EXPECT_TRUE(has_jpeg_end(data));
  EXPECT_FALSE(has_jpeg_end(data.first(data.size() - 2)));
}

}  // namespace
}  // namespace foreload
