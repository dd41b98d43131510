#include "prep/crop.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foreload {
namespace {

const CropRange kDefault = CropRange::make(0.08, 1.0, 3.0 / 4.0, 4.0 / 3.0);

Box crop(const CropRange& range, Dimensions picture, Position position, std::uint64_t seed = 7) {
  KeyedRandom random(seed, 0, position, 0);
  return draw_crop(range, picture, random);
}

TEST(CropTest, LiesInsideThePicture) {
  KeyedRandom random(1, 0, 0, 0);
  for (Position p = 0; p < 5000; ++p) {
    const Dimensions size{static_cast<std::uint32_t>(1 + random.below(700)),
                          static_cast<std::uint32_t>(1 + random.below(700))};
    const Box box = crop(kDefault, size, p);
    ASSERT_GT(box.width, 0u);
    ASSERT_GT(box.height, 0u);
    ASSERT_LE(box.x + box.width, size.width);
    ASSERT_LE(box.y + box.height, size.height);
  }
}

TEST(CropTest, AreaIsUniformAndRatioIsSymmetric) {
  constexpr int kDraws = 20000;
  double area = 0, ratio = 0;
  for (Position p = 0; p < kDraws; ++p) {
    // In so large a square every area up to a third fits with every ratio: nothing is drawn again.
    const Box box = crop(CropRange::make(0.1, 0.3, 0.5, 2.0), {4000, 4000}, p);
    area += box.width * static_cast<double>(box.height) / 16e6;
    ratio += std::log2(static_cast<double>(box.width) / box.height);
    EXPECT_NEAR(std::log2(static_cast<double>(box.width) / box.height), 0, 1.002);
  }
  EXPECT_NEAR(area / kDraws, 0.2, 0.002);
  EXPECT_NEAR(ratio / kDraws, 0, 0.02);
}

TEST(CropTest, PictureThatIsTooLongGetsItsMiddle) {
  EXPECT_EQ(crop(CropRange::make(1, 1, 0.75, 4.0 / 3.0), {1000, 30}, 0), (Box{480, 0, 40, 30}));
  EXPECT_EQ(crop(CropRange::make(1, 1, 0.75, 4.0 / 3.0), {30, 1000}, 0), (Box{0, 480, 30, 40}));
  EXPECT_EQ(crop(CropRange::make(2, 3, 0.75, 4.0 / 3.0), {50, 50}, 0), (Box{0, 0, 50, 50}));
  // Python rounds 7.5 to 8 and 4.5 to 4.
  EXPECT_EQ(crop(CropRange::make(1, 1, 1.5, 1.5), {40, 5}, 0), (Box{16, 0, 8, 5}));
  EXPECT_EQ(crop(CropRange::make(1, 1, 1.5, 1.5), {40, 3}, 0), (Box{18, 0, 4, 3}));
}

// The same on every machine, compiler and instruction set: prepared samples depend on it.
TEST(CropTest, GoldenVectors) {
  EXPECT_EQ(crop(kDefault, {500, 375}, 1), (Box{96, 71, 275, 264}));
  EXPECT_EQ(crop(kDefault, {500, 375}, 2), (Box{157, 117, 243, 217}));
  EXPECT_EQ(crop(kDefault, {500, 375}, 3), (Box{67, 14, 309, 318}));
  EXPECT_EQ(crop(kDefault, {375, 500}, 1ull << 40), (Box{40, 39, 209, 248}));
  EXPECT_EQ(crop(kDefault, {65500, 65500}, 4, 123456789), (Box{24759, 12829, 33497, 36927}));
  EXPECT_EQ(crop(CropRange::make(0.5, 0.9, 0.2, 5.0), {1, 1}, 5), (Box{0, 0, 1, 1}));
}

}  // namespace
}  // namespace foreload
