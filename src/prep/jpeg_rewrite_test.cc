#include "prep/jpeg_rewrite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <thread>

#include <jpeglib.h>

#include "base/random.h"
#include "prep/jpeg.h"
#include "prep/jpeg_layout.h"
#include "prep/jpeg_markers.h"
#include "prep/jpeg_samples.h"
#include "prep/test_pictures.h"

namespace foreload {
namespace {

using namespace std::literals;
using Sample = std::vector<std::byte>;

// All coefficients and quantisation values of a good file, read without any code of ours.
std::vector<int> coefficients(const Sample& jpeg) {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);  // a broken file ends the test program
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&info, TRUE);
  jvirt_barray_ptr* arrays = jpeg_read_coefficients(&info);
  std::vector<int> all{static_cast<int>(info.image_width), static_cast<int>(info.image_height)};
  for (int i = 0; i < info.num_components; ++i) {
    const jpeg_component_info& part = info.comp_info[i];
    all.insert(all.end(), {part.component_id, part.h_samp_factor, part.v_samp_factor});
    all.insert(all.end(), std::begin(part.quant_table->quantval), std::end(part.quant_table->quantval));
    for (JDIMENSION row = 0; row < part.height_in_blocks; ++row) {
      const JBLOCKROW blocks =
          info.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&info), arrays[i], row, 1, FALSE)[0];
      all.insert(all.end(), &blocks[0][0], &blocks[0][0] + std::size_t{part.width_in_blocks} * DCTSIZE2);
    }
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return all;
}

Result<Sample> rewritten(JpegRewriter& rewriter, const Sample& jpeg, const Limits& limits = {},
                         std::size_t most = SIZE_MAX) {
  FORELOAD_ASSIGN(const auto bytes, rewriter.rewrite(jpeg, limits, most));
  return Sample(bytes.begin(), bytes.end());
}

bool has_text(const Sample& jpeg, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return std::search(jpeg.begin(), jpeg.end(), bytes.begin(), bytes.end()) != jpeg.end();
}

TEST(JpegRewriteTest, EveryKindKeepsItsCoefficientsAndBecomesCropAddressable) {
  JpegRewriter rewriter;
  const auto decoder = make_jpeg_decoder();
  auto kinds = jpeg_kinds();
  for (const auto& spec : crop_addressable_kinds()) kinds.push_back(spec);
  for (const auto& spec : kinds) {
    if (spec.components == 4) continue;
    SCOPED_TRACE(to_text(spec));
    const auto jpeg = make_jpeg(spec);
    const auto twin = rewritten(rewriter, jpeg);
    if (spec.most_scans > 0) {
      // Its twin would have the same coefficients and other pixels, because libjpeg smooths only this one.
      ASSERT_FALSE(twin);
      ASSERT_EQ(twin.error().code, Code::kInvalid) << twin.error().message;
      continue;
    }
    ASSERT_TRUE(twin) << twin.error().message;
    ASSERT_EQ(coefficients(*twin), coefficients(jpeg));
    const auto layout = parse_jpeg_layout(*twin);
    ASSERT_TRUE(layout) << layout.error().message;
    std::vector<std::uint32_t> rows;
    ASSERT_TRUE(jpeg_row_offsets(*twin, *layout, rows));
    const auto before = decode_picture(*decoder, jpeg);
    const auto after = decode_picture(*decoder, *twin);
    ASSERT_TRUE(before && after);
    ASSERT_EQ(before->rgb, after->rgb);
    EXPECT_FALSE(decoder->damaged());
    EXPECT_LE(rewriter.held(), JpegRewriter::memory(before->size, jpeg.size()));
  }
}

TEST(JpegRewriteTest, ResultDependsOnNothingButTheFile) {
  JpegRewriter rewriter;
  for (const auto& spec : crop_addressable_kinds()) {
    const auto once = rewritten(rewriter, make_jpeg(spec));
    ASSERT_TRUE(once);
    JpegRewriter other;
    const auto again = rewritten(other, make_jpeg(spec));
    ASSERT_TRUE(again);
    EXPECT_EQ(*once, *again);
  }
}

TEST(JpegRewriteTest, MetadataThatChangesMeaningIsKept) {
  const std::string big(30'000, 'x');
  auto jpeg = make_jpeg({.width = 80, .height = 60, .progressive = true});
  jpeg = with_segment(jpeg, kJpegApp0 + 13, "Photoshop 3.0 nonsense");
  jpeg = with_segment(jpeg, kJpegCom, "a comment");
  jpeg = with_segment(jpeg, kJpegApp0 + 2, "ICC_PROFILE\0\2\2second"sv);
  jpeg = with_segment(jpeg, kJpegApp0 + 2, "ICC_PROFILE\0\1\2"s + big);
  jpeg = with_segment(jpeg, kJpegApp0 + 1, "http://ns.adobe.com/xap/1.0/\0xmp"sv);
  jpeg = with_segment(jpeg, kJpegApp0 + 1, "Exif\0\0II*\0the orientation"sv);
  JpegRewriter rewriter;
  const auto twin = rewritten(rewriter, jpeg);
  ASSERT_TRUE(twin) << twin.error().message;
  EXPECT_TRUE(has_text(*twin, "Exif\0\0II*\0the orientation"sv));
  EXPECT_TRUE(has_text(*twin, "ICC_PROFILE\0\2\2second"sv));
  EXPECT_TRUE(has_text(*twin, "ICC_PROFILE\0\1\2"s + big));
  EXPECT_TRUE(has_text(*twin, "JFIF"));
  EXPECT_FALSE(has_text(*twin, "a comment"));
  EXPECT_FALSE(has_text(*twin, "xmp"));
  EXPECT_FALSE(has_text(*twin, "Photoshop"));
  EXPECT_EQ(coefficients(*twin), coefficients(jpeg));
}

// Without its marker an RGB file would be shown as YCbCr.
TEST(JpegRewriteTest, AdobeMarkerAndItsColoursAreKept) {
  auto plain = make_jpeg({.width = 80, .height = 60});
  const std::size_t jfif = find_jpeg_marker(plain, kJpegApp0);
  plain.erase(plain.begin() + static_cast<std::ptrdiff_t>(jfif),
              plain.begin() + static_cast<std::ptrdiff_t>(jfif) + 18);
  JpegRewriter rewriter;
  const auto decoder = make_jpeg_decoder();
  std::vector<Picture> pictures;
  for (const auto adobe : {"Adobe\0\x64\0\0\0\0\0"sv, "Adobe\0\x64\0\0\0\0\1"sv}) {
    const auto jpeg = with_segment(plain, kJpegApp0 + 14, adobe);
    const auto twin = rewritten(rewriter, jpeg);
    ASSERT_TRUE(twin) << twin.error().message;
    EXPECT_TRUE(has_text(*twin, adobe));
    EXPECT_FALSE(has_text(*twin, "JFIF"));
    const auto before = decode_picture(*decoder, jpeg);
    const auto after = decode_picture(*decoder, *twin);
    ASSERT_TRUE(before && after);
    EXPECT_EQ(before->rgb, after->rgb);
    const auto part = decode_picture(*decoder, *twin, {20, 20, 10, 10});
    ASSERT_TRUE(part);
    EXPECT_EQ(part->rgb, cut_out(*before, {20, 20, 10, 10}).rgb);
    pictures.push_back(*before);
  }
  EXPECT_NE(pictures[0].rgb, pictures[1].rgb) << "the marker matters";
}

TEST(JpegRewriteTest, KindsThatCanNotBeRewrittenAreToldFromBrokenOnes) {
  JpegRewriter rewriter;
  const auto code = [&](const Sample& jpeg, const Limits& limits = {}) {
    const auto twin = rewriter.rewrite(jpeg, limits);
    return twin ? "rewritten" : code_name(twin.error().code);
  };
  const std::string kept = code_name(Code::kInvalid);
  const std::string bad = code_name(Code::kBadSample);
  const auto good = make_jpeg({.width = 200, .height = 200});
  EXPECT_EQ(code(make_jpeg({.components = 4, .seed = 100})), kept);
  EXPECT_EQ(code(make_jpeg({.components = 4, .seed = 101})), kept);
  // More blocks than an MCU may have: only possible with a scan for each component.
  EXPECT_EQ(code(make_jpeg({.sampling = {4, 2, 2, 2, 1, 1}, .one_scan_per_component = true})), kept);
  EXPECT_EQ(code(make_jpeg({.components = 2})), bad);
  EXPECT_EQ(code({}), bad);
  EXPECT_EQ(code(Sample(good.begin(), good.begin() + 2000)), bad);
  EXPECT_EQ(code(Sample(good.begin(), good.end() - 2)), bad);
  auto damaged = good;
  damaged[damaged.size() / 2] = std::byte{0xff};
  damaged[damaged.size() / 2 + 1] = std::byte{0xd9};
  EXPECT_EQ(code(damaged), bad);
  EXPECT_EQ(code(good, {.pixels = 39'999}), bad);
  EXPECT_EQ(code(make_jpeg({.progressive = true}), {.scans = 3}), bad);
  EXPECT_EQ(code(good), "rewritten"s);
}

TEST(JpegRewriteTest, MutatedFilesNeverGiveATwinWithOtherPixels) {
  constexpr std::uint64_t kSeed = 77;
  JpegRewriter rewriter;
  const auto decoder = make_jpeg_decoder();
  const auto kinds = jpeg_kinds();
  unsigned twins = 0;
  for (unsigned i = 0; i < test_amount(5000); ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", mutation " << i);
    KeyedRandom random(kSeed, 0, i, 0);
    auto jpeg = make_jpeg(kinds[i % kinds.size()]);
    for (auto count = 1 + random.below(4); count > 0; --count) {
      jpeg[random.below(jpeg.size())] = static_cast<std::byte>(random.next_u32());
    }
    const auto twin = rewritten(rewriter, jpeg, {.pixels = 1 << 22});
    if (!twin) continue;
    ++twins;
    const auto before = decode_picture(*decoder, jpeg);
    const auto after = decode_picture(*decoder, *twin);
    ASSERT_EQ(before.ok(), after.ok());
    ASSERT_TRUE(!before || before->rgb == after->rgb);
  }
  EXPECT_GT(twins, test_amount(5000) / 50);
}

TEST(JpegRewriteTest, ThreadsWithTheirOwnRewriterDoNotDisturbEachOther) {
  const auto jpeg = make_jpeg({.width = 200, .height = 100, .progressive = true});
  JpegRewriter rewriter;
  const auto expected = rewritten(rewriter, jpeg);
  ASSERT_TRUE(expected);
  std::array<unsigned, 2> same{};
  std::vector<std::thread> threads;
  for (unsigned& count : same) {
    threads.emplace_back([&] {
      JpegRewriter own;
      for (int i = 0; i < 20; ++i) count += rewritten(own, jpeg).value() == *expected;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(same[0] + same[1], 40u);
}

// --- a limit of its length ---

std::uint32_t interval_of(const Sample& jpeg) {
  const auto layout = parse_jpeg_layout(jpeg);
  EXPECT_TRUE(layout) << layout.error().message;
  return layout ? layout->interval : 0;
}

TEST(JpegRewriteTest, TwinOfABaselineFileFitsInItsPlace) {
  JpegRewriter rewriter;
  for (const unsigned width : {160u, 333u, 500u}) {
    for (const int quality : {50, 85, 95}) {
      const auto jpeg = make_jpeg({.width = width, .height = 240, .sampling = {2, 2, 1, 1, 1, 1}, .quality = quality});
      const auto twin = rewritten(rewriter, jpeg, {}, jpeg.size());
      ASSERT_TRUE(twin) << twin.error().message;
      EXPECT_LE(twin->size(), jpeg.size());
      EXPECT_EQ(coefficients(*twin), coefficients(jpeg));
    }
  }
}

TEST(JpegRewriteTest, LessRoomMeansLongerRunsUntilNoneFits) {
  JpegRewriter rewriter;
  const auto decoder = make_jpeg_decoder();
  const auto jpeg = make_jpeg({.width = 480, .height = 240});
  const auto full = decode_picture(*decoder, jpeg);
  auto twin = rewritten(rewriter, jpeg);
  ASSERT_TRUE(full && twin);
  const Box box{100, 50, 60, 70};
  std::uint32_t last = interval_of(*twin);
  ASSERT_LT(last, 60u);
  while (last < 60) {
    const std::size_t most = twin->size() - 1;
    twin = rewritten(rewriter, jpeg, {}, most);
    ASSERT_TRUE(twin) << twin.error().message << ", " << most;
    ASSERT_LE(twin->size(), most);
    ASSERT_GT(interval_of(*twin), last);
    last = interval_of(*twin);
    const auto part = decode_picture(*decoder, *twin, box);
    ASSERT_TRUE(part);
    ASSERT_EQ(part->rgb, cut_out(*full, box).rgb);
  }
  const auto exact = rewritten(rewriter, jpeg, {}, twin->size());
  ASSERT_TRUE(exact) << "it fits exactly";
  EXPECT_EQ(*exact, *twin);
  for (const std::size_t most : {twin->size() - 1, std::size_t{100}, std::size_t{0}}) {
    const auto none = rewriter.rewrite(jpeg, {}, most);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Code::kInvalid);
  }
}

TEST(JpegRewriteTest, LimitHoldsWhenMemoryOfALargerFileIsKept) {
  JpegRewriter rewriter;
  ASSERT_TRUE(rewriter.rewrite(make_jpeg({.width = 640, .height = 480, .quality = 95}), {}));
  const auto jpeg = make_jpeg({});
  const auto twin = rewritten(rewriter, jpeg);
  ASSERT_TRUE(twin);
  EXPECT_LT(twin->size() * 10, rewriter.held());
  EXPECT_FALSE(rewriter.rewrite(jpeg, {}, twin->size() / 2));
  const auto again = rewritten(rewriter, jpeg);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *twin);
}

TEST(JpegRewriteTest, TrimGivesMemoryBack) {
  JpegRewriter rewriter;
  ASSERT_TRUE(rewriter.rewrite(make_jpeg({}), {}));
  EXPECT_GT(rewriter.held(), 0u);
  rewriter.trim();
  EXPECT_EQ(rewriter.held(), 0u);
  EXPECT_TRUE(rewriter.rewrite(make_jpeg({}), {}));
}

TEST(JpegRewriteTest, IntervalDividesTheRow) {
  for (std::uint32_t mcus = 1; mcus < 200; ++mcus) {
    for (const Bytes bytes : {Bytes{1}, Bytes{10'000}, Bytes{10'000'000}}) {
      EXPECT_EQ(mcus % jpeg_restart_interval(mcus, 30, bytes), 0u);
    }
  }
  // The fewer bytes an MCU has, the dearer is a marker.
  EXPECT_GT(jpeg_restart_interval(64, 48, 20'000), jpeg_restart_interval(64, 48, 500'000));
}

}  // namespace
}  // namespace foreload
