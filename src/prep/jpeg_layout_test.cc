#include "prep/jpeg_layout.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "prep/jpeg.h"
#include "prep/jpeg_markers.h"
#include "prep/jpeg_samples.h"
#include "prep/test_pictures.h"

namespace foreload {
namespace {

using Sample = std::vector<std::byte>;

const JpegSpec kGood{.width = 93, .height = 61, .sampling = {2, 2, 1, 1, 1, 1}, .restart = 3};

// The reason why a file is not crop-addressable; empty when it is.
std::string reason(const Sample& jpeg) {
  const auto layout = parse_jpeg_layout(jpeg);
  if (!layout) return layout.error().message;
  std::vector<std::uint32_t> rows;
  const Status status = jpeg_row_offsets(jpeg, *layout, rows);
  return status ? "" : status.error().message;
}

void expect_refused(const Sample& jpeg, const char* part) {
  EXPECT_NE(reason(jpeg).find(part), std::string::npos) << "'" << reason(jpeg) << "' and not '" << part << "'";
}

// Refused, but decoded all the same, by region decode.
void expect_region(const Sample& jpeg, const char* part) {
  expect_refused(jpeg, part);
  const auto decoder = make_jpeg_decoder();
  EXPECT_TRUE(decode_picture(*decoder, jpeg, {17, 9, 30, 20}));
}

TEST(JpegLayoutTest, HeaderIsUnderstood) {
  const auto jpeg = make_jpeg(kGood);
  const auto layout = parse_jpeg_layout(jpeg);
  ASSERT_TRUE(layout) << layout.error().message;
  EXPECT_EQ(layout->size.width, 93u);
  EXPECT_EQ(layout->size.height, 61u);
  EXPECT_EQ(layout->components, 3u);
  EXPECT_EQ(layout->mcu_width, 16u);
  EXPECT_EQ(layout->mcu_height, 16u);
  EXPECT_EQ(layout->mcus_per_row, 6u);
  EXPECT_EQ(layout->mcu_rows, 4u);
  EXPECT_EQ(layout->interval, 3u);
  EXPECT_TRUE(layout->subsampled_x && layout->subsampled_y);
  EXPECT_EQ(layout->scan, find_jpeg_marker(jpeg, kJpegSos) + 14);
  EXPECT_EQ(layout->frame, find_jpeg_marker(jpeg, kJpegSof0) + 5);
}

TEST(JpegLayoutTest, OneComponentHasMcusOfOneBlock) {
  const auto jpeg = make_jpeg({.width = 33, .height = 17, .components = 1, .sampling = {2, 2}, .restart = 5});
  const auto layout = parse_jpeg_layout(jpeg);
  ASSERT_TRUE(layout) << layout.error().message;
  EXPECT_EQ(layout->mcus_per_row, 5u);
  EXPECT_EQ(layout->mcu_rows, 3u);
  EXPECT_FALSE(layout->subsampled_x || layout->subsampled_y);
}

TEST(JpegLayoutTest, EveryRowIsFound) {
  for (const auto& spec : crop_addressable_kinds()) {
    SCOPED_TRACE(to_text(spec));
    const auto jpeg = make_jpeg(spec);
    const auto layout = parse_jpeg_layout(jpeg);
    ASSERT_TRUE(layout) << layout.error().message;
    const auto runs = find_jpeg_runs(jpeg);
    std::vector<std::uint32_t> rows;
    ASSERT_TRUE(jpeg_row_offsets(jpeg, *layout, rows));
    ASSERT_EQ(runs.size(), layout->runs() + 1);
    ASSERT_EQ(rows.size(), layout->mcu_rows + 1);
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], runs[i * layout->runs_per_row()]);
    EXPECT_EQ(runs.back(), jpeg.size() - 2);
    for (std::size_t i = 1; i + 1 < runs.size(); ++i) {
      ASSERT_EQ(jpeg[runs[i] - 2], std::byte{0xff});
      ASSERT_EQ(static_cast<unsigned>(jpeg[runs[i] - 1]), kJpegRst0 + (i - 1) % 8);
    }
  }
}

TEST(JpegLayoutTest, FillBytesBeforeMarkersAreAllowed) {
  auto jpeg = make_jpeg(kGood);
  const auto before = decode_picture(*make_jpeg_decoder(), jpeg, {20, 20, 30, 30});
  for (const unsigned code : {0xd1u, 0xc4u, 0xdau, 0xd9u}) {
    const auto at = static_cast<std::ptrdiff_t>(find_jpeg_marker(jpeg, code));
    jpeg.insert(jpeg.begin() + at, 3, std::byte{0xff});
  }
  EXPECT_EQ(reason(jpeg), "");
  const auto after = decode_picture(*make_jpeg_decoder(), jpeg, {20, 20, 30, 30});
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->rgb, after->rgb);
}

TEST(JpegLayoutTest, OtherKindsAreRefusedAndDecodedByRegion) {
  auto spec = kGood;
  EXPECT_EQ(reason(make_jpeg(spec)), "");
  spec.restart = 0;
  expect_region(make_jpeg(spec), "no restart markers");
  spec.restart = 4;
  expect_region(make_jpeg(spec), "does not divide");
  spec.restart = 12;  // whole rows, but two at once
  expect_region(make_jpeg(spec), "does not divide");
  spec = kGood;
  spec.progressive = true;
  expect_region(make_jpeg(spec), "not baseline");
  spec = kGood;
  spec.arithmetic = true;
  expect_region(make_jpeg(spec), "not baseline");
  spec = kGood;
  spec.one_scan_per_component = true;
  expect_region(make_jpeg(spec), "not all in one scan");
  expect_region(make_jpeg({.components = 4, .restart = 1}), "neither 1 nor 3");
}

TEST(JpegLayoutTest, TwelveBitsAreRefused) {
  auto jpeg = make_jpeg(kGood);
  jpeg[find_jpeg_marker(jpeg, kJpegSof0) + 4] = std::byte{12};
  expect_refused(jpeg, "8 bits");
}

TEST(JpegLayoutTest, TwoRestartIntervalsAreRefused) {
  expect_region(with_segment(make_jpeg(kGood), kJpegDri, std::string_view("\0\3", 2)), "twice");
}

TEST(JpegLayoutTest, SizeThatComesLaterIsRefused) {
  auto jpeg = make_jpeg(kGood);
  const std::size_t frame = find_jpeg_marker(jpeg, kJpegSof0);
  jpeg[frame + 5] = jpeg[frame + 6] = std::byte{0};
  expect_refused(jpeg, "no size");
  // The marker that defines it, although the header does.
  jpeg = make_jpeg(kGood);
  const Sample lines{std::byte{0xff}, std::byte{0xdc}, std::byte{0}, std::byte{4}, std::byte{0}, std::byte{61}};
  jpeg.insert(jpeg.end() - 2, lines.begin(), lines.end());
  expect_region(jpeg, "not complete and in order");
}

TEST(JpegLayoutTest, MissingAndSwappedRestartMarkersAreRefused) {
  const auto good = make_jpeg(kGood);
  const auto layout = parse_jpeg_layout(good);
  ASSERT_TRUE(layout);
  const auto runs = find_jpeg_runs(good);
  auto jpeg = good;
  jpeg.erase(jpeg.begin() + runs[3] - 2, jpeg.begin() + runs[3]);
  expect_region(jpeg, "not complete and in order");
  jpeg = good;
  std::swap(jpeg[runs[2] - 1], jpeg[runs[3] - 1]);
  expect_region(jpeg, "not complete and in order");
  jpeg = good;  // one too many
  const Sample marker(good.begin() + runs[2] - 2, good.begin() + runs[2]);
  jpeg.insert(jpeg.begin() + runs[2], marker.begin(), marker.end());
  expect_region(jpeg, "not complete and in order");
  jpeg = good;
  jpeg.resize(jpeg.size() - 2);
  expect_refused(jpeg, "ends early");
}

TEST(JpegLayoutTest, SecondScanIsRefused) {
  auto jpeg = make_jpeg(kGood);
  const Sample scan(jpeg.begin() + static_cast<std::ptrdiff_t>(find_jpeg_marker(jpeg, kJpegSos)), jpeg.end() - 2);
  jpeg.insert(jpeg.end() - 2, scan.begin(), scan.end());
  expect_region(jpeg, "not complete and in order");
}

TEST(JpegLayoutTest, CutOffHeadersAreRefused) {
  const auto jpeg = make_jpeg(kGood);
  const auto layout = parse_jpeg_layout(jpeg);
  ASSERT_TRUE(layout);
  for (std::size_t size = 0; size < layout->scan; ++size) {
    ASSERT_FALSE(parse_jpeg_layout(std::span(jpeg).first(size))) << size;
  }
}

TEST(JpegLayoutTest, StrangeSamplingIsRefused) {
  const auto good = make_jpeg(kGood);
  const std::size_t factors = find_jpeg_marker(good, kJpegSof0) + 11;
  const auto with_factors = [&](unsigned a, unsigned b) {
    auto jpeg = good;
    jpeg[factors] = static_cast<std::byte>(a);
    jpeg[factors + 3] = static_cast<std::byte>(b);
    return jpeg;
  };
  expect_refused(with_factors(0x32, 0x21), "not a whole number");
  expect_refused(with_factors(0x44, 0x11), "more than 10 blocks");
  expect_refused(with_factors(0x02, 0x11), "not 1 to 4");
}

}  // namespace
}  // namespace foreload
