// Our Huffman decoder against libjpeg's own: the same pixels of every box, whatever the file, and the same answer to
// damaged ones.
#include "prep/jpeg_entropy.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "prep/jpeg.h"
#include "prep/jpeg_samples.h"
#include "prep/test_pictures.h"

namespace foreload {
namespace {

using Sample = std::vector<std::byte>;

std::vector<JpegSpec> unusual_kinds() {
  const std::vector<unsigned> halved{2, 2, 1, 1, 1, 1};
  std::vector<JpegSpec> kinds;
  for (const int quality : {1, 30, 95, 100}) {
    for (const bool long_codes : {false, true}) {
      for (const unsigned restart : {0u, 1u, 5u, 13u, 40u}) {
        kinds.push_back({.width = 210, .height = 77, .sampling = halved, .quality = quality, .restart = restart});
        kinds.back().long_codes = long_codes;
        kinds.back().seed = kinds.size();
      }
    }
  }
  return kinds;
}

std::vector<JpegSpec> all_kinds() {
  std::vector<JpegSpec> kinds = unusual_kinds();
  for (const auto& more : {jpeg_kinds(), crop_addressable_kinds()}) kinds.insert(kinds.end(), more.begin(), more.end());
  return kinds;
}

Box any_box(Dimensions size, KeyedRandom& random) {
  Box box;
  box.x = static_cast<std::uint32_t>(random.below(size.width));
  box.y = static_cast<std::uint32_t>(random.below(size.height));
  box.width = static_cast<std::uint32_t>(1 + random.below(size.width - box.x));
  box.height = static_cast<std::uint32_t>(1 + random.below(size.height - box.y));
  return box;
}

// What a decoder makes of a box at a scale.
struct Answer {
  bool is_good = false;
  bool is_damaged = false;
  std::vector<std::uint8_t> rgb;  // also of the rows before an error
};

Answer answer(ImageDecoder& decoder, const Sample& jpeg, std::uint32_t eighths, std::uint64_t seed) {
  Answer answer;
  const auto size = decoder.open(jpeg, Limits{.pixels = 1 << 20});
  if (!size) return answer;
  if (decoder.can_scale()) decoder.set_scale(eighths);
  KeyedRandom random(seed, 0, 0, 0);
  const Box box = any_box(decoder.can_scale() ? scaled(*size, eighths) : *size, random);
  std::vector<std::uint8_t> scratch(decoder.memory(box).scratch);
  if (!decoder.start(box, scratch)) return answer;
  for (std::uint32_t y = 0; y < box.height; ++y) {
    const auto row = decoder.next_row();
    if (!row) return answer;
    for (std::uint32_t x = 0; x < box.width; ++x) {
      answer.rgb.insert(answer.rgb.end(), *row + x * kPixelBytes, *row + x * kPixelBytes + 3);
    }
  }
  answer.is_good = true;
  answer.is_damaged = decoder.damaged();
  decoder.close();
  return answer;
}

TEST(JpegEntropyTest, EveryBoxOfEveryKindIsAsLibjpegDecodesIt) {
  constexpr std::uint64_t kSeed = 21;
  const auto ours = make_jpeg_decoder();
  const auto plain = make_plain_jpeg_decoder();
  for (const JpegSpec& spec : all_kinds()) {
    const Sample jpeg = make_jpeg(spec);
    for (std::uint64_t i = 0; i < 12; ++i) {
      SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", box " << i << " of " << to_text(spec));
      const std::uint32_t eighths = i < 8 ? 8 : static_cast<std::uint32_t>(1 + i % 8);
      const Answer got = answer(*ours, jpeg, eighths, kSeed + i);
      ASSERT_TRUE(got.is_good);
      EXPECT_FALSE(got.is_damaged);
      EXPECT_EQ(got.rgb, answer(*plain, jpeg, eighths, kSeed + i).rgb);
    }
  }
}

// A part of a picture through libjpeg itself, so that a decoder that gives up is seen.
struct Direct {
  bool taken = false;
  bool gave_up = false;
  std::vector<std::uint8_t> pixels;
};

struct Part {
  double left = 0;  // of the width, as below
  double width = 1;
  double top = 0;  // of the height, which is skipped
};

Direct decode_directly(const Sample& jpeg, const Part& part, JpegEntropy* entropy) {
  Direct result;
  JpegReader reader;
  EXPECT_TRUE(reader.open(jpeg, 100));
  jpeg_decompress_struct& info = reader.info();
  reader.guard().run([&] {
    jpeg_start_decompress(&info);
    const unsigned mcu = info.comps_in_scan == 1 ? DCTSIZE : DCTSIZE * static_cast<unsigned>(info.max_h_samp_factor);
    const unsigned row = info.comps_in_scan == 1 ? DCTSIZE : DCTSIZE * static_cast<unsigned>(info.max_v_samp_factor);
    McuRange columns{static_cast<unsigned>(part.left * info.MCUs_per_row), info.MCUs_per_row};
    columns.end = std::min(columns.end, columns.first + 2 + static_cast<unsigned>(part.width * info.MCUs_per_row));
    const unsigned skipped = static_cast<unsigned>(part.top * info.output_height);
    JDIMENSION first = columns.first * mcu;
    JDIMENSION count = std::min(columns.end * mcu, info.output_width) - first;
    if (count < info.output_width) jpeg_crop_scanline(&info, &first, &count);
    if (entropy) result.taken = entropy->take_over(info, columns, skipped / row);
    if (skipped > 0) jpeg_skip_scanlines(&info, skipped);
    const std::size_t row_bytes = std::size_t{info.output_width} * static_cast<unsigned>(info.output_components);
    result.pixels.resize(row_bytes * info.output_height);
    while (info.output_scanline < info.output_height) {
      JSAMPROW pixels = result.pixels.data() + row_bytes * info.output_scanline;
      jpeg_read_scanlines(&info, &pixels, 1);
    }
  });
  result.gave_up = entropy && entropy->gave_up();
  return result;
}

TEST(JpegEntropyTest, TakesOverEveryBaselineScanAndGivesUpNone) {
  JpegEntropy best;
  JpegEntropy portable(JpegEntropy::Code::kPortable);
  const Part parts[] = {{}, {0.3, 0.3, 0}, {0.6, 1, 0.5}, {0, 0.1, 0.3}, {0, 1, 0.7}};
  for (const JpegSpec& spec : all_kinds()) {
    const Sample jpeg = make_jpeg(spec);
    const bool is_one_scan = !spec.one_scan_per_component || spec.components == 1;
    for (std::size_t i = 0; i < std::size(parts); ++i) {
      SCOPED_TRACE(testing::Message() << "part " << i << " of " << to_text(spec));
      const Direct expected = decode_directly(jpeg, parts[i], nullptr);
      for (JpegEntropy* entropy : {&best, &portable}) {
        const Direct got = decode_directly(jpeg, parts[i], entropy);
        EXPECT_EQ(got.taken, !spec.progressive && !spec.arithmetic && is_one_scan);
        EXPECT_FALSE(got.gave_up);
        EXPECT_EQ(got.pixels, expected.pixels);
      }
    }
  }
}

// Some bytes of the data behind the header are others, or missing, or too many.
Sample damaged(Sample jpeg, KeyedRandom& random) {
  const std::size_t header = find_jpeg_marker(jpeg, 0xda) + 12;
  const auto place = [&] { return static_cast<std::ptrdiff_t>(header + random.below(jpeg.size() - header - 2)); };
  const auto kind = random.below(4);
  if (kind == 0) {
    jpeg.erase(jpeg.begin() + place());
  } else if (kind == 1) {
    jpeg.insert(jpeg.begin() + place(), static_cast<std::byte>(random.below(2) * 0xff));
  } else {
    for (auto count = 1 + random.below(3); count > 0; --count) {
      jpeg[static_cast<std::size_t>(place())] = static_cast<std::byte>(random.next_u32());
    }
  }
  return jpeg;
}

TEST(JpegEntropyTest, DamagedDataIsDecodedAsLibjpegDoesIt) {
  constexpr std::uint64_t kSeed = 22;
  const auto ours = make_jpeg_decoder();
  const auto plain = make_plain_jpeg_decoder();
  std::vector<JpegSpec> kinds = all_kinds();
  std::erase_if(kinds, [](const JpegSpec& spec) { return spec.progressive || spec.arithmetic; });
  std::vector<Sample> samples;
  for (const JpegSpec& spec : kinds) samples.push_back(make_jpeg(spec));
  unsigned damages = 0;
  const unsigned amount = test_amount(30'000);
  for (unsigned i = 0; i < amount; ++i) {
    const std::size_t which = i % kinds.size();
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", damage " << i << " to " << to_text(kinds[which]));
    KeyedRandom random(kSeed, 0, i, 0);
    const Sample jpeg = damaged(samples[which], random);
    const Answer expected = answer(*plain, jpeg, 8, i);
    const Answer got = answer(*ours, jpeg, 8, i);
    ASSERT_EQ(got.is_good, expected.is_good);
    ASSERT_EQ(got.rgb, expected.rgb);
    // What lies between the box and a restart marker is not looked at.
    ASSERT_TRUE(got.is_damaged == expected.is_damaged || (expected.is_damaged && kinds[which].restart > 0));
    damages += got.is_damaged;
  }
  EXPECT_GT(damages, amount / 4) << "most damage must be met";
  EXPECT_LT(damages, amount - amount / 10);
}

}  // namespace
}  // namespace foreload
