#include "prep/stroke.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "prep/angle.h"

namespace foreload {
namespace {

// A picture in memory of its own.
struct Sheet {
  explicit Sheet(Dimensions size) : bytes(Canvas::bytes(size)), canvas{bytes.data(), size} {}
  Sheet(const Sheet& other) : bytes(other.bytes), canvas{bytes.data(), other.canvas.size} {}
  Sheet& operator=(const Sheet&) = delete;

  std::uint8_t& at(std::size_t x, std::size_t y, std::size_t channel) {
    return canvas.row(y)[x * kPixelBytes + channel];
  }
  std::vector<std::uint8_t> rgb() {
    std::vector<std::uint8_t> all;
    for (std::size_t y = 0; y < canvas.size.height; ++y) {
      for (std::size_t x = 0; x < canvas.size.width; ++x) {
        for (std::size_t channel = 0; channel < 3; ++channel) all.push_back(at(x, y, channel));
      }
    }
    return all;
  }

  std::vector<std::uint8_t> bytes;
  Canvas canvas;
};

Sheet sheet(Dimensions size, std::uint64_t seed = 1) {
  Sheet made(size);
  KeyedRandom random(seed, 0, 0, 0);
  for (std::size_t y = 0; y < size.height; ++y) {
    for (std::size_t x = 0; x < size.width; ++x) {
      // Smooth in one part, noise in the other.
      const bool smooth = x < size.width / 2;
      for (std::size_t c = 0; c < 3; ++c) {
        made.at(x, y, c) = static_cast<std::uint8_t>(20 + (smooth ? 3 * x + 5 * y + 40 * c : random.below(200)) % 200);
      }
    }
  }
  return made;
}

std::vector<std::uint8_t> painted(const Stroke& stroke, Sheet from) {
  Scratch scratch;
  EXPECT_TRUE(scratch.reset(stroke_bytes(stroke, from.canvas.size)));
  if (works_in_place(stroke)) {
    paint(stroke, from.canvas, from.canvas, scratch);
    return from.rgb();
  }
  Sheet to(size_after(stroke, from.canvas.size));
  paint(stroke, from.canvas, to.canvas, scratch);
  return to.rgb();
}

std::uint64_t hash_of(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t hash = 0;
  for (const std::uint8_t byte : bytes) hash = mix64(hash + byte + 1);
  return hash;
}

struct Golden {
  const char* name;
  Stroke stroke;
  std::uint64_t hash;
};

const Sampling kBilinear{Interpolation::kBilinear, {1, 2, 3}};

std::vector<Golden> goldens() {
  using Kind = Enhance::Kind;
  return {
      {"brightness", Enhance{Kind::kBrightness, 1.37}, 16007572721237737087u},
      {"contrast", Enhance{Kind::kContrast, 0.31}, 12452466114744394948u},
      {"saturation", Enhance{Kind::kSaturation, 1.9}, 8492867609255058657u},
      {"sharpness", Enhance{Kind::kSharpness, 1.8}, 7624236778028757662u},
      {"hue", ShiftHue{-0.21}, 10895092396601124871u},
      {"gray", MakeGray{}, 16339431605973823177u},
      {"posterize", Posterize{3}, 1390510254327926644u},
      {"solarize", Solarize{127.5}, 11958379006373885555u},
      {"autocontrast", AutoContrast{}, 17009103232485011511u},
      {"equalize", Equalize{}, 10815547417971199787u},
      {"blur", Blur{7, 5, 1.3}, 17310435120511421804u},
      {"rotate", Rotate{33.25, {}}, 8565816697849958530u},
      {"rotate bilinear", Rotate{-100.5, kBilinear}, 18026274011704484830u},
      {"affine", Affine{12.5, {3, -4}, 1.2, {10, -5}, {}}, 10152819798601446293u},
      {"affine bilinear", Affine{-7.25, {-2, 1}, 0.7, {0, 15}, kBilinear}, 9085983898107688054u},
      {"shear", Shear{0.3, 0, {}}, 4985081435303388755u},
      {"border", Border{{1, 2, 3, 4}, PadMode::kReflect, {}}, 7121463085628263851u},
  };
}

// Calls `work` once for every instruction set that this machine and this program have.
template <typename Work>
void for_targets(Work work) {
  for (std::int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    const std::int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    work();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// The same on every machine, compiler and instruction set: prepared samples depend on it.
TEST(StrokeTest, GoldenPictures) {
  const Sheet from = sheet({61, 47});
  for_targets([&] {
    for (const Golden& golden : goldens()) {
      EXPECT_EQ(hash_of(painted(golden.stroke, from)), golden.hash) << golden.name;
    }
  });
}

// Wide rows and odd ends, all instruction sets.
TEST(StrokeTest, InstructionSetsAgree) {
  for (const Dimensions size : {Dimensions{700, 9}, Dimensions{257, 8}, Dimensions{13, 10}, Dimensions{9, 7}}) {
    const Sheet from = sheet(size, size.width);
    for (const Golden& golden : goldens()) {
      const auto best = painted(golden.stroke, from);
      for_targets([&] { EXPECT_EQ(painted(golden.stroke, from), best) << golden.name; });
    }
  }
}

TEST(StrokeTest, EveryStrokeChangesThePicture) {
  Sheet from = sheet({61, 47});
  for (const Golden& golden : goldens()) EXPECT_NE(painted(golden.stroke, from), from.rgb()) << golden.name;
}

TEST(StrokeTest, StrokesWorkOnTheSmallestPictures) {
  for (const Dimensions size : {Dimensions{1, 1}, Dimensions{1, 9}, Dimensions{9, 1}, Dimensions{2, 2}}) {
    for (const Golden& golden : goldens()) {
      if (std::holds_alternative<Blur>(golden.stroke)) continue;  // needs half its kernel
      EXPECT_EQ(painted(golden.stroke, sheet(size)).size(), [&] {
        const Dimensions after = size_after(golden.stroke, size);
        return std::size_t{3} * after.width * after.height;
      }()) << golden.name;
    }
    EXPECT_EQ(painted(Blur{1, 1, 2.0}, sheet(size)), sheet(size).rgb());
  }
}

TEST(StrokeTest, NeutralParametersChangeNothing) {
  Sheet from = sheet({40, 30});
  for (const auto kind :
       {Enhance::Kind::kBrightness, Enhance::Kind::kContrast, Enhance::Kind::kSaturation, Enhance::Kind::kSharpness}) {
    EXPECT_EQ(painted(Enhance{kind, 1.0}, from), from.rgb());
  }
  EXPECT_EQ(painted(Posterize{8}, from), from.rgb());
  EXPECT_EQ(painted(Solarize{256}, from), from.rgb());
  EXPECT_EQ(painted(Blur{9, 9, 0.05}, from), from.rgb());
  for (const Sampling& sampling : {Sampling{}, kBilinear}) {
    EXPECT_EQ(painted(Rotate{0, sampling}, from), from.rgb());
    EXPECT_EQ(painted(Rotate{360, sampling}, from), from.rgb());
    EXPECT_EQ(painted(Affine{0, {0, 0}, 1, {0, 0}, sampling}, from), from.rgb());
  }
}

TEST(StrokeTest, HalfATurnMirrorsBothWays) {
  Sheet from = sheet({40, 31});
  Sheet turned(from.canvas.size);
  for (std::size_t y = 0; y < 31; ++y) {
    for (std::size_t x = 0; x < 40; ++x) {
      for (std::size_t c = 0; c < 3; ++c) turned.at(39 - x, 30 - y, c) = from.at(x, y, c);
    }
  }
  EXPECT_EQ(painted(Rotate{180, {}}, from), turned.rgb());
  EXPECT_EQ(painted(Rotate{-180, kBilinear}, from), turned.rgb());
}

TEST(StrokeTest, TranslationMovesPixelsAndFillsTheRest) {
  Sheet from = sheet({20, 10});
  Sheet moved(from.canvas.size);
  for (std::size_t y = 0; y < 10; ++y) {
    for (std::size_t x = 0; x < 20; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        moved.at(x, y, c) = x >= 3 && y < 8 ? from.at(x - 3, y + 2, c) : static_cast<std::uint8_t>(c + 1);
      }
    }
  }
  EXPECT_EQ(painted(Affine{0, {3, -2}, 1, {0, 0}, {Interpolation::kNearest, {1, 2, 3}}}, from), moved.rgb());
  EXPECT_EQ(painted(Affine{0, {3, -2}, 1, {0, 0}, kBilinear}, from), moved.rgb());
}

TEST(StrokeTest, HugeMapsShowNothing) {
  const std::vector<std::uint8_t> black(20 * 10 * 3, 0);
  EXPECT_EQ(painted(Affine{10, {1'000'000'000'000, 0}, 0.01, {89, -89}, {}}, sheet({20, 10})), black);
}

TEST(StrokeTest, BlurOfOneColourIsThatColour) {
  Sheet flat({30, 20});
  for (std::size_t i = 0; i < 30 * 20; ++i) {
    flat.at(i % 30, i / 30, 0) = 255;
    flat.at(i % 30, i / 30, 1) = 128;
    flat.at(i % 30, i / 30, 2) = 1;
  }
  for (const double sigma : {0.01, 0.4, 2.0, 50.0}) EXPECT_EQ(painted(Blur{23, 11, sigma}, flat), flat.rgb()) << sigma;
}

// Against the definition, in doubles.
TEST(StrokeTest, BlurIsWithinOneLevelOfTheFormula) {
  Sheet from = sheet({33, 21}, 5);
  const auto ours = painted(Blur{9, 5, 1.7}, from);
  const auto bell = [](int d) { return std::exp(-d * d / (2 * 1.7 * 1.7)); };
  const auto mirrored = [](int place, int size) {
    return place < 0 ? -place : place >= size ? 2 * size - 2 - place : place;
  };
  for (int y = 0; y < 21; ++y) {
    for (int x = 0; x < 33; ++x) {
      double sum = 0, weights = 0;
      for (int dy = -2; dy <= 2; ++dy) {
        for (int dx = -4; dx <= 4; ++dx) {
          const double weight = bell(dx) * bell(dy);
          weights += weight;
          sum += weight * from.at(static_cast<std::size_t>(mirrored(x + dx, 33)),
                                  static_cast<std::size_t>(mirrored(y + dy, 21)), 1);
        }
      }
      EXPECT_NEAR(ours[static_cast<std::size_t>((y * 33 + x) * 3 + 1)], sum / weights, 0.52);
    }
  }
}

TEST(StrokeTest, EqualizeAndAutoContrastLeaveOneColourAlone) {
  Sheet flat({9, 9});
  std::memset(flat.bytes.data(), 77, flat.bytes.size());
  EXPECT_EQ(painted(Equalize{}, flat), flat.rgb());
  EXPECT_EQ(painted(AutoContrast{}, flat), flat.rgb());
}

TEST(AngleTest, CloseToTheRealFunctions) {
  KeyedRandom random(9, 0, 0, 0);
  for (int i = 0; i < 20'000; ++i) {
    const double degrees = (static_cast<double>(random.next_u32()) - 2147483648.0) / 4294967296.0 * 1440.0;
    const auto radians = static_cast<long double>(degrees) * 3.14159265358979323846264338L / 180.0L;
    const SinCos found = sin_cos(degrees);
    ASSERT_NEAR(found.sin, static_cast<double>(std::sin(radians)), 3e-16) << degrees;
    ASSERT_NEAR(found.cos, static_cast<double>(std::cos(radians)), 3e-16) << degrees;
  }
}

TEST(AngleTest, RightAnglesAreExact) {
  for (int turn = -8; turn <= 8; ++turn) {
    const SinCos found = sin_cos(90.0 * turn);
    const int quarter = ((turn % 4) + 4) % 4;
    EXPECT_EQ(found.sin, quarter == 1 ? 1.0 : quarter == 3 ? -1.0 : 0.0) << turn;
    EXPECT_EQ(found.cos, quarter == 0 ? 1.0 : quarter == 2 ? -1.0 : 0.0) << turn;
  }
}

TEST(AngleTest, GoldenVectors) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(sin_cos(30.0).sin), 4602678819172646911u);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(sin_cos(-123.4375).cos), 13826510466643116375u);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(sin_cos(359.99999976158142).sin), 13704980635529157945u);
}

}  // namespace
}  // namespace foreload
