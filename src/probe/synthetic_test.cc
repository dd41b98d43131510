#include "probe/synthetic.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>

#include <jpeglib.h>

#include "base/hash.h"
#include "probe/noise.h"
#include "probe/scene.h"

namespace foreload {
namespace {

struct Decoded {
  unsigned width = 0;
  unsigned height = 0;
  int channels = 0;
  bool progressive = false;
  int h_sampling = 0;
  int v_sampling = 0;
  long warnings = 0;
};

// Decodes the whole file; a fatal error ends the test through libjpeg's own exit.
Decoded decode(const std::vector<std::byte>& file) {
  jpeg_error_mgr errors;
  jpeg_decompress_struct info;
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&info, TRUE);
  const Decoded decoded{info.image_width,
                        info.image_height,
                        info.num_components,
                        info.progressive_mode != 0,
                        info.comp_info[0].h_samp_factor,
                        info.comp_info[0].v_samp_factor,
                        0};
  jpeg_start_decompress(&info);
  std::vector<unsigned char> row(std::size_t{info.output_width} * static_cast<unsigned>(info.output_components));
  unsigned char* line = row.data();
  while (info.output_scanline < info.output_height) jpeg_read_scanlines(&info, &line, 1);
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  Decoded result = decoded;
  result.warnings = errors.num_warnings;
  return result;
}

TEST(SyntheticTest, TheSameSeedAndIndexGiveTheSameBytes) {
  for (std::uint64_t index = 0; index < 2; ++index) {
    EXPECT_EQ(hash_bytes(synthetic_jpeg(3, index)), hash_bytes(synthetic_jpeg(3, index))) << index;
  }
}

TEST(SyntheticTest, OtherSeedsAndIndicesGiveOtherImages) {
  EXPECT_NE(hash_bytes(synthetic_jpeg(3, 0)), hash_bytes(synthetic_jpeg(3, 1)));
  EXPECT_NE(hash_bytes(synthetic_jpeg(3, 0)), hash_bytes(synthetic_jpeg(4, 0)));
}

TEST(SyntheticTest, EveryImageIsACleanJpegOfItsDrawnShape) {
  for (std::uint64_t index = 0; index < 16; ++index) {
    const SyntheticSpec spec = synthetic_spec(11, index);
    const Decoded decoded = decode(synthetic_jpeg(11, index));
    EXPECT_EQ(decoded.width, spec.width) << index;
    EXPECT_EQ(decoded.height, spec.height) << index;
    EXPECT_EQ(decoded.channels, static_cast<int>(channels(spec.style.colour))) << index;
    EXPECT_EQ(decoded.progressive, spec.style.progressive) << index;
    EXPECT_EQ(decoded.warnings, 0) << index;
    if (spec.style.colour == JpegColour::kYcc) {
      EXPECT_EQ(decoded.h_sampling, static_cast<int>(spec.style.h_sampling)) << index;
      EXPECT_EQ(decoded.v_sampling, static_cast<int>(spec.style.v_sampling)) << index;
    }
  }
}

TEST(SyntheticTest, FilesComeOutNearTheirTarget) {
  double total_error = 0;
  constexpr int kImages = 16;
  for (std::uint64_t index = 0; index < kImages; ++index) {
    const auto target = static_cast<double>(synthetic_spec(5, index).target_bytes);
    total_error += std::abs(static_cast<double>(synthetic_jpeg(5, index).size()) - target) / target;
  }
  EXPECT_LT(total_error / kImages, 0.06);
}

TEST(SyntheticTest, SizesAndKindsFollowImageNet) {
  constexpr int kImages = 20000;
  double bytes = 0, pixels = 0;
  std::map<std::string, double> share;
  for (std::uint64_t index = 0; index < kImages; ++index) {
    const SyntheticSpec spec = synthetic_spec(1, index);
    bytes += static_cast<double>(spec.target_bytes);
    pixels += static_cast<double>(spec.width) * spec.height;
    share[fmt::format("{}x{}", spec.style.h_sampling, spec.style.v_sampling)] += 1.0 / kImages;
    if (spec.style.colour == JpegColour::kGray) share["gray"] += 1.0 / kImages;
    if (spec.style.colour == JpegColour::kCmyk) share["cmyk"] += 1.0 / kImages;
    if (spec.style.colour == JpegColour::kYcck) share["ycck"] += 1.0 / kImages;
    if (spec.style.progressive) share["progressive"] += 1.0 / kImages;
  }
  EXPECT_NEAR(bytes / kImages, 114'000, 6'000);
  EXPECT_NEAR(pixels / kImages, 225'000, 20'000);
  EXPECT_NEAR(share["1x1"], 0.75, 0.05);
  EXPECT_NEAR(share["2x2"], 0.21, 0.04);
  for (const char* rare : {"gray", "cmyk", "ycck", "progressive"}) {
    EXPECT_GT(share[rare], 0.0005) << rare;
    EXPECT_LT(share[rare], 0.05) << rare;
  }
}

TEST(SceneTest, MoreDetailTakesMoreBytes) {
  const Scene scene(9, 160, 120);
  std::vector<std::uint8_t> pixels(std::size_t{160} * 120 * 3);
  std::size_t before = 0;
  for (const int detail : {0, 32, 128, 512}) {
    std::vector<const std::uint8_t*> rows;
    for (unsigned y = 0; y < 120; ++y) {
      const std::span<std::uint8_t> row(&pixels[std::size_t{y} * 480], 480);
      scene.render_row(y, detail, JpegColour::kYcc, row);
      rows.push_back(row.data());
    }
    const std::size_t bytes = encode_jpeg(rows, 160, {}).size();
    EXPECT_GT(bytes, before) << detail;
    before = bytes;
  }
}

TEST(SceneTest, OnePixelIsEnough) {
  const Scene scene(1, 1, 1);
  std::array<std::uint8_t, 4> pixel{};
  scene.render_row(0, kUnitDetail, JpegColour::kCmyk, pixel);
  EXPECT_GT(pixel[3], 0);
}

TEST(NoisePlaneTest, HasNoMeanAndTheStatedSpread) {
  const std::vector<std::int16_t> noise = noise_plane(7, {512, 512, 6, 256});
  const double mean = std::accumulate(noise.begin(), noise.end(), 0.0) / static_cast<double>(noise.size());
  double squares = 0;
  for (const std::int16_t value : noise) squares += (value - mean) * (value - mean);
  EXPECT_NEAR(mean, 0, 4);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(noise.size())), 30, 10);
}

}  // namespace
}  // namespace foreload
