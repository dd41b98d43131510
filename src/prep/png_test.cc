#include "prep/png.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/random.h"
#include "base/sanitizer.h"
#include "prep/png_samples.h"
#include "prep/test_pictures.h"

namespace foreload {
namespace {

TEST(PngTest, EveryBoxEqualsTheSamePartOfTheFullDecode) {
  constexpr std::uint64_t kSeed = 99;
  const auto decoder = make_png_decoder();
  const auto kinds = png_kinds();
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", type " << kinds[kind].type << ", depth "
                                    << kinds[kind].depth << ", interlaced " << kinds[kind].interlaced);
    const auto png = make_png(kinds[kind]);
    const auto full = decode_picture(*decoder, png);
    ASSERT_TRUE(full) << full.error().message;
    KeyedRandom random(kSeed, 0, kind, 0);
    for (int i = 0; i < 10; ++i) {
      Box box;
      box.x = static_cast<std::uint32_t>(random.below(full->size.width));
      box.y = static_cast<std::uint32_t>(random.below(full->size.height));
      box.width = static_cast<std::uint32_t>(1 + random.below(full->size.width - box.x));
      box.height = static_cast<std::uint32_t>(1 + random.below(full->size.height - box.y));
      const auto part = decode_picture(*decoder, png, box);
      ASSERT_TRUE(part) << part.error().message;
      ASSERT_EQ(part->rgb, cut_out(*full, box).rgb);
    }
  }
}

TEST(PngTest, InterlacedEqualsPlain) {
  const auto decoder = make_png_decoder();
  for (PngSpec spec : png_kinds()) {
    spec.interlaced = false;
    const auto plain = decode_picture(*decoder, make_png(spec));
    spec.interlaced = true;
    const auto interlaced = decode_picture(*decoder, make_png(spec));
    ASSERT_TRUE(plain && interlaced);
    EXPECT_EQ(plain->rgb, interlaced->rgb) << "type " << spec.type << ", depth " << spec.depth;
  }
}

TEST(PngTest, SixteenBitGrayIsCutOffAt255) {
  const auto decoder = make_png_decoder();
  const auto picture = decode_picture(*decoder, make_png({.depth = 16, .type = 0}));
  ASSERT_TRUE(picture);
  const auto white = std::count(picture->rgb.begin(), picture->rgb.end(), 255);
  EXPECT_GT(white, static_cast<std::ptrdiff_t>(picture->rgb.size() * 98 / 100));
}

// Takes all memory that can be had in pieces of a kilobyte or more.
void exhaust_memory() {
  const rlimit none{0, 0};
  if (setrlimit(RLIMIT_AS, &none) != 0) _exit(2);
  for (std::size_t size = 1 << 20; size >= 1 << 10; size /= 2) {
    while (std::malloc(size) != nullptr) {
    }
  }
}

TEST(PngTest, TooLittleMemoryIsNotABadSample) {
  if (kHasSanitizer) GTEST_SKIP() << "sanitizers end the process when memory ends";
  const auto decoder = make_png_decoder();
  const auto png = make_png(png_kinds().front());
  const auto size = decoder->open(png, Limits{});
  ASSERT_TRUE(size);
  const Box box{0, 0, size->width, size->height};
  std::vector<std::uint8_t> scratch(decoder->memory(box).scratch);
  const pid_t child = fork();
  if (child == 0) {
    exhaust_memory();
    const Status status = decoder->start(box, scratch);
    _exit(!status.ok() && status.error().code == Code::kNoMemory ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(PngTest, CutOffFileIsRefused) {
  const auto decoder = make_png_decoder();
  const auto png = make_png({.width = 200, .height = 200});
  for (const std::size_t length : {9u, 32u, 40u, 1000u}) {
    const auto picture = decode_picture(*decoder, std::span(png).first(length));
    ASSERT_FALSE(picture) << length;
    EXPECT_EQ(picture.error().code, Code::kBadSample);
  }
}

TEST(PngTest, WrongChecksumIsRefused) {
  const auto decoder = make_png_decoder();
  auto png = make_png({});
  png[30] ^= std::byte{1};
  const auto picture = decode_picture(*decoder, png);
  ASSERT_FALSE(picture);
  EXPECT_NE(picture.error().message.find("PNG: "), std::string::npos);
}

TEST(PngTest, LimitsHoldAfterTheHeader) {
  const auto decoder = make_png_decoder();
  const auto png = make_png({.width = 100, .height = 100});
  EXPECT_TRUE(decoder->open(png, {.pixels = 10'000}));
  EXPECT_FALSE(decoder->open(png, {.pixels = 9'999}));
}

TEST(PngTest, DimensionsComeFromTheHeader) {
  const auto size = png_dimensions(std::span<const std::byte>(make_png({.width = 12, .height = 34})).first(33));
  ASSERT_TRUE(size);
  EXPECT_EQ(size->width, 12u);
  EXPECT_EQ(size->height, 34u);
}

}  // namespace
}  // namespace foreload
