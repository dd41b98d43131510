#include "probe/prep_pictures.h"

#include <gtest/gtest.h>

#include "prep/jpeg_layout.h"
#include "probe/fast_decode.h"
#include "probe/jpeg_copy.h"

namespace foreload {
namespace {

constexpr unsigned kPictures = 6;

class PrepPicturesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto pictures = PrepPictures::load("", kPictures);
    ASSERT_TRUE(pictures) << pictures.error().message;
    pictures_ = *std::move(pictures);
  }

  PrepPictures pictures_;
};

std::vector<std::byte> pixels(std::span<const std::byte> jpeg, std::size_t picture,
                              std::span<const std::uint32_t> rows = {}) {
  ChainOptions options;
  options.transforms = {random_resized_crop(64)};
  options.dtype = DType::kU8;
  const auto chain = Chain::compile(options);
  if (!chain) return {};
  ChainRunner runner(*chain);
  std::vector<std::byte> out(chain->output().bytes());
  if (!runner.begin(jpeg, prep_key(1, picture), {.offsets = rows}) || !runner.finish(out) || runner.damaged())
    return {};
  return out;
}

TEST_F(PrepPicturesTest, ConvertedOnesWithTheirRowsShowTheSame) {
  for (std::size_t i = 0; i < kPictures; ++i) {
    ASSERT_GT(pictures_.intervals[i], 0u);
    const auto layout = parse_jpeg_layout(pictures_.converted[i]);
    ASSERT_TRUE(layout);
    EXPECT_TRUE(are_jpeg_row_offsets(pictures_.converted[i], *layout, pictures_.rows[i], {0, layout->mcu_rows}));
    const auto expected = pixels(pictures_.raw[i], i);
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(pixels(pictures_.converted[i], i, pictures_.rows[i]), expected);
  }
}

// Otherwise the rewriter would be measured against something else.
TEST_F(PrepPicturesTest, BareCopyIsTheConvertedPictureWithoutMetadata) {
  JpegCopier copier;
  for (std::size_t i = 0; i < kPictures; ++i) {
    const auto copy = copier.copy(pictures_.raw[i], pictures_.intervals[i]);
    ASSERT_TRUE(copy) << copy.error().message;
    const auto layout = parse_jpeg_layout(*copy);
    ASSERT_TRUE(layout);
    EXPECT_EQ(layout->interval, pictures_.intervals[i]);
    EXPECT_EQ(pixels(*copy, i), pixels(pictures_.raw[i], i));
    const auto size = static_cast<double>(pictures_.converted[i].size());
    EXPECT_NEAR(static_cast<double>(copy->size()) / size, 1, 0.01);
  }
}

TEST_F(PrepPicturesTest, BareCopyOfNoJpegIsAnError) {
  JpegCopier copier;
  EXPECT_FALSE(copier.copy(std::span(pictures_.raw[0]).subspan(2), 1));
  EXPECT_TRUE(copier.copy(pictures_.raw[0], 1));
}

TEST_F(PrepPicturesTest, FastDiffersOnlyWhereItDecodesSmaller) {
  const auto fast = measure_fast_decode(pictures_, {.side = 64, .crops = 20});
  ASSERT_TRUE(fast) << fast.error().message;
  EXPECT_EQ(fast->all.crops, 24u);  // whole rounds
  ASSERT_GT(fast->scaled.crops, 0u);
  ASSERT_LT(fast->scaled.crops, fast->all.crops);
  EXPECT_GT(fast->scaled.mean_square, 0);
  EXPECT_NEAR(fast->all.mean_levels, fast->scaled.mean_levels * fast->scaled_share(), 1e-9);
  EXPECT_NEAR(fast->all.mean_square, fast->scaled.mean_square * fast->scaled_share(), 1e-9);
  EXPECT_LE(fast->worst_psnr, fast->scaled.psnr());
}

TEST_F(PrepPicturesTest, ALargeTargetLeavesNothingToFast) {
  const auto fast = measure_fast_decode(pictures_, {.side = 2048, .crops = 1});
  ASSERT_TRUE(fast) << fast.error().message;
  EXPECT_EQ(fast->scaled.crops, 0u);
  EXPECT_EQ(fast->all.mean_square, 0);
}

TEST_F(PrepPicturesTest, ComparingFastStopsWhenAsked) {
  const auto fast = measure_fast_decode(pictures_, {.side = 64, .crops = 20, .stop = [] { return true; }});
  ASSERT_FALSE(fast);
  EXPECT_EQ(fast.error().code, Code::kCancelled);
}

}  // namespace
}  // namespace foreload
