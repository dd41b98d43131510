#include "record/sample_converter.h"

#include <gtest/gtest.h>

#include "prep/jpeg_samples.h"
#include "prep/png_samples.h"
#include "prep/webp_samples.h"

namespace foreload {
namespace {

using File = std::vector<std::byte>;

File without_end(File file) {
  file.resize(file.size() * 2 / 3);
  return file;
}

// A marker where none belongs: libjpeg complains and goes on.
File damaged(File file) {
  file[file.size() / 2] = std::byte{0xff};
  file[file.size() / 2 + 1] = std::byte{0xd5};
  return file;
}

class SampleConverterTest : public testing::Test {
 protected:
  Result<ConvertedSample> convert(const char* key, const File& bytes) {
    SampleConverter converter(options_, pool_);
    return converter.convert(key, bytes);
  }
  void expect_outcome(const char* key, const File& bytes, Outcome outcome) {
    const auto sample = convert(key, bytes);
    ASSERT_TRUE(sample.ok()) << key << ": " << sample.error().message;
    EXPECT_EQ(static_cast<char>(sample->outcome), static_cast<char>(outcome)) << key;
    if (outcome != Outcome::kRewritten && outcome != Outcome::kShrunk) {
      EXPECT_EQ(sample->bytes, bytes) << key;
    }
  }
  void expect_bad(const char* key, const File& bytes) {
    options_.on_bad = OnBadSample::kFail;
    const auto sample = convert(key, bytes);
    ASSERT_FALSE(sample.ok()) << key;
    EXPECT_EQ(sample.error().code, Code::kBadSample) << sample.error().message;
    options_.on_bad = OnBadSample::kKeep;
    expect_outcome(key, bytes, Outcome::kBad);
  }

  ConvertOptions options_;
  ScratchPool pool_{256_MiB, 1};
};

TEST_F(SampleConverterTest, WhatIsCopiedWasDecoded) {
  const File webp = make_webp({.lossless = true});
  for (const bool keep_original : {false, true}) {
    options_.keep_original = keep_original;
    expect_outcome("a.png", make_png({}), Outcome::kCopied);
    expect_outcome("a.webp", webp, Outcome::kCopied);
    expect_outcome("cmyk.jpg", make_jpeg({.components = 4}), Outcome::kCopied);
    expect_bad("a.png", without_end(make_png({})));
    expect_bad("a.webp", without_end(webp));
  }
}

TEST_F(SampleConverterTest, KeepingTheOriginalTellsDamageApart) {
  options_.keep_original = true;
  const File jpeg = make_jpeg({.width = 200, .height = 200});
  expect_outcome("a.jpg", jpeg, Outcome::kCopied);
  expect_bad("a.jpg", without_end(jpeg));
  options_.on_bad = OnBadSample::kFail;
  expect_outcome("a.jpg", damaged(jpeg), Outcome::kDamaged);
  options_.keep_original = false;
  expect_outcome("a.jpg", damaged(jpeg), Outcome::kDamaged);
}

TEST_F(SampleConverterTest, ArithmeticJpegsAreRewrittenAndArraysNotLookedInto) {
  expect_outcome("a.jpg", make_jpeg({.arithmetic = true}), Outcome::kRewritten);
  expect_outcome("a.npy", without_end(make_png({})), Outcome::kCopied);
}

TEST_F(SampleConverterTest, DecodingTakesItsMemoryFromThePool) {
  const File png = make_png({.width = 1000, .height = 1000, .interlaced = true});
  const File jpeg = damaged(make_jpeg({.width = 2000, .height = 2000, .progressive = true}));
  ScratchPool small(1_MiB, 1);
  SampleConverter converter(options_, small);
  for (const File& file : {png, jpeg}) {
    const auto sample = converter.convert("a.image", file);
    ASSERT_FALSE(sample.ok());
    EXPECT_EQ(sample.error().code, Code::kNoMemory) << sample.error().message;
  }
}

TEST_F(SampleConverterTest, EverythingThatWasTakenIsGivenBack) {
  ScratchPool pool(96_MiB, 1);
  SampleConverter converter(options_, pool);
  options_.on_bad = OnBadSample::kKeep;
  const File png = make_png({.width = 1500, .height = 1500, .interlaced = true});
  const File jpeg = make_jpeg({.width = 1500, .height = 1500, .progressive = true});
  for (const std::uint32_t max_side : {0u, 100u}) {
    options_.max_side = max_side;
    for (const File& file : {png, jpeg, damaged(jpeg), without_end(jpeg)}) {
      ASSERT_TRUE(converter.convert("a.image", file).ok());
      ASSERT_TRUE(pool.try_take(pool.largest() - pool.own_share()));
      pool.give(pool.largest() - pool.own_share());
    }
  }
}

TEST_F(SampleConverterTest, ABadSampleThatShouldBeShrunkIsKeptAsItIs) {
  options_.max_side = 20;
  expect_outcome("a.png", make_png({}), Outcome::kShrunk);
  expect_bad("a.png", without_end(make_png({})));
}

}  // namespace
}  // namespace foreload
