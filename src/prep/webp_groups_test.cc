#include "prep/webp_groups.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "prep/test_pictures.h"
#include "prep/webp.h"
#include "prep/webp_samples.h"

namespace foreload {
namespace {

class BitWriter {
 public:
  BitWriter& add(std::uint32_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      if (count_ % 8 == 0) bytes_.push_back(std::byte{0});
      if ((value >> i & 1) != 0) bytes_.back() |= std::byte{1} << static_cast<int>(count_ % 8);
      ++count_;
    }
    return *this;
  }
  // A prefix code with one symbol, which then takes no bits.
  BitWriter& add_single(std::uint32_t symbol) { return add(1, 1).add(0, 1).add(1, 1).add(symbol, 8); }
  // An image whose pixels all have this colour.
  BitWriter& add_image(std::uint32_t green, std::uint32_t red) {
    return add(0, 1).add_single(green).add_single(red).add_single(0).add_single(0).add_single(0);
  }
  std::string text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

 private:
  std::vector<std::byte> bytes_;
  std::size_t count_ = 0;
};

std::string little_endian(std::size_t value) {
  std::string text;
  for (int i = 0; i < 4; ++i) text.push_back(static_cast<char>(value >> 8 * i & 255));
  return text;
}

std::string chunk(const std::string& name, const std::string& content) {
  return name + little_endian(content.size()) + content + std::string(content.size() % 2, '\0');
}

std::vector<std::byte> riff(const std::string& chunks) {
  const std::string text = "RIFF" + little_endian(4 + chunks.size()) + "WEBP" + chunks;
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// A picture with palette, predictor and tiles of 4 x 4, of which all have the group `last`.
BitWriter transforms_and_groups(std::uint32_t last) {
  BitWriter bits;
  bits.add(1, 1).add(0, 2).add(0, 3).add_image(5, 255);   // predictor, 4 x 4
  bits.add(1, 1).add(2, 2);                               // subtract green
  bits.add(1, 1).add(3, 2).add(99, 8).add_image(7, 255);  // 100 colours
  bits.add(0, 1).add(0, 1);                               // no more, no colour cache
  bits.add(1, 1).add(0, 3).add_image(last & 255, last >> 8);
  return bits;
}

std::vector<std::byte> lossless(Dimensions size, const BitWriter& data) {
  BitWriter header;
  header.add(0x2f, 8).add(size.width - 1, 14).add(size.height - 1, 14).add(0, 4);
  return riff(chunk("VP8L", header.text() + data.text() + std::string(8, '\0')));
}

TEST(WebpGroupsTest, TheLargestNumberOfATileCounts) {
  const Dimensions size{2000, 1000};  // 125,000 tiles
  for (const std::uint32_t last : {0u, 1u, 255u, 256u, 999u, 1000u, 40'000u, 65'535u}) {
    EXPECT_EQ(count_webp_groups(lossless(size, transforms_and_groups(last)), size), last + 1);
  }
}

TEST(WebpGroupsTest, ThereAreNoMoreThanTilesAndWhatLibwebpKeepsUnused) {
  EXPECT_EQ(count_webp_groups(lossless({40, 40}, transforms_and_groups(65'535)), {40, 40}), 1000u);
  EXPECT_EQ(count_webp_groups(lossless({400, 400}, transforms_and_groups(65'535)), {400, 400}), 10'000u);
}

TEST(WebpGroupsTest, OfSeveralAlphasTheLastCounts) {
  const auto alpha = [](std::uint32_t last) { return chunk("ALPH", "\x01" + transforms_and_groups(last).text()); };
  const auto file = riff(alpha(9000) + alpha(30) + chunk("VP8 ", "any"));
  EXPECT_EQ(count_webp_groups(file, {2000, 1000}), 31u);
  EXPECT_EQ(count_webp_groups(riff(chunk("ALPH", std::string(20, '\0')) + chunk("VP8 ", "any")), {9, 9}), 0u);
}

TEST(WebpGroupsTest, AFileThatEndsBeforeTheNumberHasNone) {
  const auto file = lossless({2000, 1000}, transforms_and_groups(40'000));
  EXPECT_FALSE(count_webp_groups(std::span(file).first(file.size() - 16), {2000, 1000}));
  for (std::size_t length = 0; length < 30; ++length) {
    EXPECT_FALSE(count_webp_groups(std::span(file).first(length), {2000, 1000})) << length;
  }
}

TEST(WebpGroupsTest, FilesOfTheEncoderAreReadToTheNumber) {
  for (const unsigned side : {1u, 30u, 200u}) {
    for (const float quality : {0.f, 60.f, 90.f}) {
      for (const bool lossless : {false, true}) {
        const auto file = make_webp({side, side, lossless, true, false, quality});
        const auto groups = count_webp_groups(file, {side, side});
        ASSERT_TRUE(groups) << side << " " << quality << " " << lossless;
        EXPECT_GE(*groups, lossless ? 1u : 0u);
        EXPECT_LE(*groups, 1 + file.size() / 100) << side << " " << quality << " " << lossless;
      }
    }
  }
}

TEST(WebpGroupsTest, AFileThatWasMadeToHarmAnnouncesWhatItTakes) {
  const auto decoder = make_webp_decoder();
  ASSERT_TRUE(decoder->open(lossless({2000, 1000}, transforms_and_groups(65'535)), Limits{}));
  EXPECT_GE(decoder->memory({0, 0, 10, 10}).library, 65'536u * 20'000);
  ASSERT_TRUE(decoder->open(lossless({2000, 1000}, transforms_and_groups(1)), Limits{}));
  EXPECT_LT(decoder->memory({0, 0, 10, 10}).library, 11_MiB);
}

}  // namespace
}  // namespace foreload
