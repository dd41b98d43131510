#include "prep/jpeg_splice.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>

#include "base/random.h"
#include "prep/jpeg.h"
#include "prep/jpeg_layout.h"
#include "prep/jpeg_markers.h"
#include "prep/jpeg_samples.h"
#include "prep/test_pictures.h"

namespace foreload {
namespace {

using Sample = std::vector<std::byte>;
constexpr std::uint64_t kSeed = 8151;

// Boxes whose edges often lie on MCU boundaries or on the edge of the picture.
Box random_box(Dimensions size, std::uint32_t mcu, KeyedRandom& random) {
  const auto side = [&](std::uint32_t whole, std::uint32_t& first, std::uint32_t& length) {
    auto a = static_cast<std::uint32_t>(random.below(whole + 1));
    auto b = static_cast<std::uint32_t>(random.below(whole + 1));
    if (random.below(3) == 0) a = a / mcu * mcu;
    if (random.below(3) == 0) b = std::min((b + mcu - 1) / mcu * mcu, whole);
    if (random.below(4) == 0) b = a + static_cast<std::uint32_t>(random.below(4));
    first = std::min({a, b, whole - 1});
    length = std::clamp<std::uint32_t>(std::max(a, b) - first, 1, whole - first);
  };
  Box box;
  side(size.width, box.x, box.width);
  side(size.height, box.y, box.height);
  return box;
}

std::string text_of(const Box& box) {
  return testing::PrintToString(std::vector{box.x, box.y, box.width, box.height});
}

Result<Picture> decode_scaled(ImageDecoder& decoder, const Sample& jpeg, std::uint32_t eighths, Box box = {}) {
  FORELOAD_ASSIGN(const Dimensions size, decoder.open(jpeg, Limits{}));
  decoder.set_scale(eighths);
  if (box.width == 0) box = {0, 0, scaled(size, eighths).width, scaled(size, eighths).height};
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

// --- R12 ---

TEST(JpegSpliceTest, EveryBoxEqualsTheSamePartOfTheFullDecode) {
  const auto kinds = crop_addressable_kinds();
  const unsigned boxes = test_amount(5000) / static_cast<unsigned>(kinds.size()) + 1;
  const auto decoder = make_jpeg_decoder();
  unsigned spliced = 0;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    SCOPED_TRACE(to_text(kinds[kind]));
    const auto jpeg = make_jpeg(kinds[kind]);
    const auto layout = parse_jpeg_layout(jpeg);
    ASSERT_TRUE(layout) << layout.error().message;
    const auto full = decode_picture(*decoder, jpeg);
    ASSERT_TRUE(full) << full.error().message;
    KeyedRandom random(kSeed, 0, kind, 0);
    for (unsigned i = 0; i < boxes; ++i) {
      const Box box = random_box(full->size, layout->mcu_width, random);
      spliced += !covers_most(*layout, plan_jpeg_splice(*layout, box, 8));
      const auto part = decode_picture(*decoder, jpeg, box);
      ASSERT_TRUE(part) << part.error().message;
      ASSERT_EQ(part->rgb, cut_out(*full, box).rgb) << "seed " << kSeed << ", box " << i << ": " << text_of(box);
      ASSERT_FALSE(decoder->damaged());
    }
  }
  EXPECT_GT(spliced, boxes * kinds.size() / 2) << "most boxes must have gone through the splice";
}

TEST(JpegSpliceTest, BoxesAtEveryEdgeEqualTheFullDecode) {
  const auto decoder = make_jpeg_decoder();
  for (const auto& spec : crop_addressable_kinds()) {
    SCOPED_TRACE(to_text(spec));
    const auto jpeg = make_jpeg(spec);
    const auto full = decode_picture(*decoder, jpeg);
    ASSERT_TRUE(full);
    const auto [w, h] = full->size;
    for (const Box& box :
         {Box{0, 0, 1, 1}, Box{w - 1, 0, 1, 1}, Box{0, h - 1, 1, 1}, Box{w - 1, h - 1, 1, 1}, Box{0, 0, w, 1},
          Box{0, h - 1, w, 1}, Box{0, 0, 1, h}, Box{w - 1, 0, 1, h}, Box{16, 16, 16, 16}, Box{32, 32, w - 32, h - 32},
          Box{w - 5, h - 9, 5, 9}, Box{0, 0, 32, 32}, Box{15, 15, 2, 2}, Box{31, 7, 34, 26}}) {
      const auto part = decode_picture(*decoder, jpeg, box);
      ASSERT_TRUE(part) << part.error().message;
      ASSERT_EQ(part->rgb, cut_out(*full, box).rgb) << text_of(box);
    }
  }
}

// The reference is the full decode at the same scale.
TEST(JpegSpliceTest, ScaledBoxesEqualTheSamePartOfTheScaledDecode) {
  auto kinds = crop_addressable_kinds();
  const auto others = jpeg_kinds();
  kinds.insert(kinds.end(), others.begin(), others.end());
  const unsigned boxes = test_amount(5000) / static_cast<unsigned>(kinds.size() * 7) + 1;
  const auto decoder = make_jpeg_decoder();
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    const auto jpeg = make_jpeg(kinds[kind]);
    for (std::uint32_t eighths = 1; eighths < 8; ++eighths) {
      SCOPED_TRACE(to_text(kinds[kind]) + ", eighths " + std::to_string(eighths));
      const auto full = decode_scaled(*decoder, jpeg, eighths);
      ASSERT_TRUE(full) << full.error().message;
      KeyedRandom random(kSeed, 1, kind * 8 + eighths, 0);
      for (unsigned i = 0; i < boxes; ++i) {
        const Box box = random_box(full->size, 2 * eighths, random);
        const auto part = decode_scaled(*decoder, jpeg, eighths, box);
        ASSERT_TRUE(part) << part.error().message;
        ASSERT_EQ(part->rgb, cut_out(*full, box).rgb) << "seed " << kSeed << ", box " << i << ": " << text_of(box);
      }
    }
  }
}

TEST(JpegSpliceTest, OnlyTheRunsOfTheBoxAreInIt) {
  const auto jpeg = make_jpeg({.width = 320, .height = 160, .sampling = {2, 2, 1, 1, 1, 1}, .restart = 2});
  const auto layout = parse_jpeg_layout(jpeg);
  ASSERT_TRUE(layout);
  // Strictly inside of MCUs 4 and 5, 2 and 3: no margin.
  const JpegSplice inside = plan_jpeg_splice(*layout, {65, 33, 30, 30}, 8);
  EXPECT_EQ(inside.runs, (McuRange{2, 3}));
  EXPECT_EQ(inside.rows, (McuRange{2, 4}));
  // On their edges: one MCU, and so one run, more on each side.
  const JpegSplice edges = plan_jpeg_splice(*layout, {64, 32, 32, 32}, 8);
  EXPECT_EQ(edges.runs, (McuRange{1, 4}));
  EXPECT_EQ(edges.rows, (McuRange{1, 5}));
  std::vector<std::uint32_t> rows;
  ASSERT_TRUE(jpeg_row_offsets(jpeg, *layout, rows));
  Sample small(jpeg_splice_bytes(*layout, inside, rows));
  const auto size = write_jpeg_splice(jpeg, *layout, inside, rows, small);
  ASSERT_TRUE(size);
  small.resize(*size);
  EXPECT_LT(small.size() - layout->scan, (jpeg.size() - layout->scan) / 10);
  const auto again = parse_jpeg_layout(small);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->size.width, 32u);
  EXPECT_EQ(again->size.height, 32u);
  EXPECT_TRUE(jpeg_row_offsets(small, *again, rows));
}

// --- row offsets that someone else wrote down ---

TEST(JpegSpliceTest, RowOffsetsOfAnIndexAreUsedAndNeverTrusted) {
  const auto jpeg = make_jpeg({.width = 320, .height = 160, .restart = 4});
  const auto decoder = make_jpeg_decoder();
  const auto full = decode_picture(*decoder, jpeg);
  const auto layout = parse_jpeg_layout(jpeg);
  ASSERT_TRUE(full && layout);
  std::vector<std::uint32_t> rows;
  ASSERT_TRUE(jpeg_row_offsets(jpeg, *layout, rows));
  EXPECT_TRUE(are_jpeg_row_offsets(jpeg, *layout, rows, {0, layout->mcu_rows}));
  const Box box{100, 50, 60, 70};
  const auto expect_right = [&](std::span<const std::uint32_t> hint) {
    decoder->hint_rows({.offsets = hint});
    const auto part = decode_picture(*decoder, jpeg, box);
    ASSERT_TRUE(part) << part.error().message;
    ASSERT_EQ(part->rgb, cut_out(*full, box).rgb);
    ASSERT_FALSE(decoder->damaged());
  };
  expect_right(rows);
  expect_right({});
  KeyedRandom random(kSeed, 2, 0, 0);
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", forgery " << i);
    auto forged = rows;
    const auto at = random.below(forged.size());
    if (i % 3 == 0) forged[at] = random.next_u32();
    if (i % 3 == 1) forged[at] += static_cast<std::uint32_t>(random.below(9)) - 4;
    if (i % 3 == 2) forged.resize(at);
    expect_right(forged);
  }
}

// Only the header and the rows of a crop are there; the rest is noise.
TEST(JpegSpliceTest, APartOfTheFileGivesWhatTheWholeFileGives) {
  KeyedRandom random(kSeed, 3, 0, 0);
  const auto decoder = make_jpeg_decoder();
  int cut = 0;
  for (int i = 0; i < 120; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", picture " << i);
    const auto width = static_cast<std::uint32_t>(64 + random.below(300));
    const auto height = static_cast<std::uint32_t>(64 + random.below(300));
    JpegSpec spec{.width = width, .height = height, .restart = 1, .seed = static_cast<std::uint64_t>(i)};
    if (i % 2 == 0) spec.sampling = {2, 2, 1, 1, 1, 1};
    const auto jpeg = make_jpeg(spec);
    const auto layout = parse_jpeg_layout(jpeg);
    std::vector<std::uint32_t> rows;
    ASSERT_TRUE(layout && jpeg_row_offsets(jpeg, *layout, rows));
    Box box{0, static_cast<std::uint32_t>(random.below(height)), width, 0};
    box.height = 1 + static_cast<std::uint32_t>(random.below(height - box.y));
    const auto hint = rows_around(rows, layout->size, {box.y, std::int64_t{box.y} + box.height});
    ASSERT_TRUE(hint);
    auto part = jpeg;
    for (std::size_t at = rows[0]; at < part.size(); ++at) {
      const std::size_t end = rows[hint->end] + (hint->end == layout->mcu_rows ? 2 : 0);
      if (at < rows[hint->first] || at >= end) part[at] = static_cast<std::byte>(random.next_u32());
    }
    decoder->hint_rows(*hint);
    const auto from_part = decode_picture(*decoder, part, box);
    if (!hint->is_partial() || !from_part) continue;  // most of it is wanted, and then the whole file is
    ++cut;
    decoder->hint_rows({.offsets = rows});
    const auto from_whole = decode_picture(*decoder, jpeg, box);
    ASSERT_TRUE(from_whole);
    ASSERT_EQ(from_part->rgb, from_whole->rgb);
  }
  EXPECT_GT(cut, 60);
}

TEST(JpegSpliceTest, APartThatIsNotEnoughIsRefused) {
  const auto jpeg = make_jpeg({.width = 320, .height = 320, .sampling = {2, 2, 1, 1, 1, 1}, .restart = 4});
  const auto layout = parse_jpeg_layout(jpeg);
  std::vector<std::uint32_t> rows;
  ASSERT_TRUE(layout && jpeg_row_offsets(jpeg, *layout, rows));
  const auto decoder = make_jpeg_decoder();
  const auto refused = [&](const RowHint& hint, const Box& box) {
    decoder->hint_rows(hint);
    return !decode_picture(*decoder, jpeg, box).ok();
  };
  EXPECT_FALSE(refused({rows, 4, 10}, {0, 100, 320, 40}));
  EXPECT_TRUE(refused({rows, 8, 10}, {0, 100, 320, 40})) << "rows above the part";
  EXPECT_TRUE(refused({rows, 4, 7}, {0, 100, 320, 40})) << "rows below it";
  EXPECT_TRUE(refused({rows, 1, 19}, {0, 0, 320, 320})) << "all of it";
  auto moved = rows;
  moved[6] += 1;
  EXPECT_TRUE(refused({moved, 4, 10}, {0, 100, 320, 40})) << "a marker is not where it should be";
  EXPECT_TRUE(refused({{}, 4, 10}, {0, 100, 320, 40})) << "no offsets at all";
  const std::vector<std::uint32_t> few(rows.begin(), rows.begin() + 5);
  EXPECT_TRUE(refused({few, 1, 3}, {0, 100, 320, 40})) << "offsets of another file";
}

// Right at the row offsets, wrong between them: found when the splice is written.
TEST(JpegSpliceTest, WrongMarkersBetweenRowOffsetsMeanRegionDecode) {
  const auto good = make_jpeg({.width = 320, .height = 160, .restart = 10});
  const auto layout = parse_jpeg_layout(good);
  ASSERT_TRUE(layout);
  const auto runs = find_jpeg_runs(good);
  std::vector<std::uint32_t> rows;
  ASSERT_TRUE(jpeg_row_offsets(good, *layout, rows));
  auto jpeg = good;
  jpeg[runs[9] - 1] = std::byte{0xd7};
  ASSERT_TRUE(are_jpeg_row_offsets(jpeg, *layout, rows, {0, layout->mcu_rows}));
  const auto decoder = make_jpeg_decoder();
  const Box box{100, 16, 60, 9};
  const auto by_region = decode_picture(*decoder, jpeg, box);
  ASSERT_TRUE(by_region);
  EXPECT_TRUE(decoder->damaged());
  decoder->hint_rows({.offsets = rows});
  const auto with_hint = decode_picture(*decoder, jpeg, box);
  ASSERT_TRUE(with_hint);
  EXPECT_EQ(with_hint->rgb, by_region->rgb);
  EXPECT_TRUE(decoder->damaged());
}

// --- broken files ---

TEST(JpegSpliceTest, DamageOutsideOfTheBoxIsNotSeenAndInsideItIs) {
  auto jpeg = make_jpeg({.width = 320, .height = 160, .restart = 4});
  const auto layout = parse_jpeg_layout(jpeg);
  ASSERT_TRUE(layout);
  const auto decoder = make_jpeg_decoder();
  const auto full = decode_picture(*decoder, jpeg);
  ASSERT_TRUE(full);
  const auto runs = find_jpeg_runs(jpeg);
  const std::size_t run = 10 * 5 + 5;  // MCUs 20 … 23 of row 5
  for (std::size_t i = runs[run]; i + 4 < runs[run + 1]; ++i) jpeg[i] = std::byte{0xf7};
  ASSERT_EQ(find_jpeg_runs(jpeg), runs);
  const Box beside{0, 0, 150, 100};
  const auto part = decode_picture(*decoder, jpeg, beside);
  ASSERT_TRUE(part);
  EXPECT_FALSE(decoder->damaged());
  EXPECT_EQ(part->rgb, cut_out(*full, beside).rgb);
  const auto hit = decode_picture(*decoder, jpeg, {150, 30, 40, 40});
  EXPECT_TRUE(!hit || decoder->damaged());
}

double cpu_seconds() {
  timespec time{};
  EXPECT_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Sample mutated(Sample jpeg, KeyedRandom& random) {
  const auto place = [&] { return static_cast<std::size_t>(random.below(jpeg.size())); };
  switch (random.below(4)) {
    case 0:
      jpeg.resize(place());
      break;
    case 1:  // a marker's code
      for (auto marker = next_jpeg_marker(jpeg, place()); marker; marker.reset()) {
        jpeg[marker->after - 1] = static_cast<std::byte>(random.below(2) == 0 ? 0xc0 + random.below(64) : 0);
      }
      break;
    case 2:
      std::rotate(jpeg.begin(), jpeg.begin() + static_cast<std::ptrdiff_t>(place()), jpeg.end());
      std::rotate(jpeg.begin(), jpeg.begin() + static_cast<std::ptrdiff_t>(place()), jpeg.end());
      break;
    default:
      for (auto count = 1 + random.below(6); count > 0; --count) {
        const std::size_t reach = random.below(2) == 0 ? jpeg.size() : std::min<std::size_t>(jpeg.size(), 700);
        jpeg[random.below(reach)] = static_cast<std::byte>(random.next_u32());
      }
  }
  return jpeg;
}

TEST(JpegSpliceTest, MutatedFilesGiveAPictureOrAReasonWithinASecond) {
  const auto kinds = crop_addressable_kinds();
  const auto decoder = make_jpeg_decoder();
  const auto good = make_jpeg(kinds[8]);
  const auto expected = decode_picture(*decoder, good, {20, 20, 30, 20});
  ASSERT_TRUE(expected);
  std::vector<Sample> samples;
  for (const auto& spec : kinds) samples.push_back(make_jpeg(spec));
  unsigned decoded = 0;
  const unsigned amount = test_amount(20'000);
  for (unsigned i = 0; i < amount; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", mutation " << i);
    KeyedRandom random(kSeed, 3, i, 0);
    const Sample jpeg = mutated(samples[i % samples.size()], random);
    const double start = cpu_seconds();
    const auto size = jpeg_dimensions(jpeg);
    Box box{0, 0, 1, 1};
    // A box of the size that the file claims, when that is a sane one.
    if (size && size->width <= 2000 && size->height <= 2000) box = random_box(*size, 16, random);
    const auto picture = decode_picture(*decoder, jpeg, box);
    EXPECT_LT(cpu_seconds() - start, 1.0);
    decoded += picture.ok();
    ASSERT_TRUE(picture || picture.error().code == Code::kBadSample) << picture.error().message;
    if (i % 50 != 0) continue;
    const auto again = decode_picture(*decoder, good, {20, 20, 30, 20});
    ASSERT_TRUE(again) << "a good file after a broken one";
    ASSERT_EQ(again->rgb, expected->rgb);
  }
  EXPECT_GT(decoded, amount / 10);
  EXPECT_LT(decoded, amount - amount / 10);
}

}  // namespace
}  // namespace foreload
