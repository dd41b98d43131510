#include "prep/resize.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace foreload {
namespace {

using Bytes8 = std::vector<std::uint8_t>;

class Collect final : public RowSink {
 public:
  explicit Collect(std::size_t width) : width_(width) {}
  void push(const std::uint8_t* row) override {
    for (std::size_t x = 0; x < width_; ++x, row += kPixelBytes) bytes.insert(bytes.end(), row, row + 3);
  }
  Bytes8 bytes;

 private:
  std::size_t width_;
};

// Resizes a picture of four-byte pixels and returns a window of the result, as R, G, B.
Bytes8 resized(const Bytes8& picture, Dimensions from, Dimensions to, const Box& window) {
  Geometry geometry;
  geometry.begin(from);
  EXPECT_TRUE(geometry.resize(to));
  EXPECT_TRUE(geometry.cut(window.x, window.y, {window.width, window.height}));
  geometry.settle();
  const Box box = geometry.source_box();
  Collect collect(window.width);
  if (geometry.steps().empty()) ADD_FAILURE() << "nothing to resize";
  Scratch scratch;
  EXPECT_TRUE(scratch.reset(ResizeStage::bytes(geometry.steps()[0])));
  ResizeStage stage;
  stage.prepare(geometry.steps()[0], scratch, collect);
  for (std::uint32_t y = 0; y < box.height; ++y) {
    Bytes8 row(row_bytes(box.width));
    const auto first = picture.begin() + (std::ptrdiff_t{box.y + y} * from.width + box.x) * 4;
    std::copy(first, first + std::ptrdiff_t{box.width} * 4, row.begin());
    stage.push(row.data());
  }
  return collect.bytes;
}

Bytes8 repeated(const Bytes8& values, std::size_t times) {
  Bytes8 bytes;
  for (const auto value : values) bytes.insert(bytes.end(), times, value);
  return bytes;
}

Bytes8 noise(std::size_t count, std::uint64_t seed) {
  KeyedRandom random(seed, 0, 0, 0);
  Bytes8 bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next_u32());
  return bytes;
}

// What Pillow 9.4 gives; tests/pixels.py compares much more.
TEST(ResizeTest, EqualsPillow) {
  const Bytes8 row = repeated({10, 200, 30, 250, 90}, kPixelBytes);
  EXPECT_EQ(resized(row, {5, 1}, {3, 1}, {0, 0, 3, 1}), repeated({91, 117, 159}, 3));
  EXPECT_EQ(resized(row, {5, 1}, {8, 1}, {0, 0, 8, 1}), repeated({10, 93, 189, 83, 99, 236, 160, 90}, 3));
  EXPECT_EQ(resized(row, {1, 5}, {1, 2}, {0, 0, 1, 2}), repeated({103, 147}, 3));
}

// FNV-1a over the RGB bytes of a resized pattern.
std::uint64_t pattern_hash(Dimensions from, Dimensions to) {
  Bytes8 picture;
  for (std::uint64_t y = 0; y < from.height; ++y) {
    for (std::uint64_t x = 0; x < from.width; ++x) {
      for (std::uint64_t c = 0; c < 4; ++c) {
        picture.push_back(static_cast<std::uint8_t>((x * x * 3 + y * y * 5 + x * y * 7 + c * 50) >> 3));
      }
    }
  }
  const Bytes8 result = resized(picture, from, to, {0, 0, to.width, to.height});
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint8_t byte : result) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

// The hashes are of Pillow's results: large enough that a wrong last bit of a weight shows.
TEST(ResizeTest, LargePicturesEqualPillow) {
  EXPECT_EQ(pattern_hash({400, 300}, {224, 224}), 0x11b09f0f054c8e2du);
  EXPECT_EQ(pattern_hash({97, 301}, {224, 100}), 0x8d9daab96d081f12u);
  EXPECT_EQ(pattern_hash({1500, 40}, {64, 64}), 0x84b1574aabc332ceu);
}

TEST(ResizeTest, OneColourStaysThatColour) {
  for (const std::uint8_t value : {0, 1, 127, 254, 255}) {
    const Bytes8 picture(std::size_t{37} * 41 * 4, value);
    for (const std::uint32_t side : {1u, 2u, 17u, 36u, 40u, 300u}) {
      const Bytes8 small = resized(picture, {37, 41}, {side, side}, {0, 0, side, side});
      EXPECT_EQ(small, Bytes8(std::size_t{side} * side * 3, value)) << side;
    }
  }
}

TEST(ResizeTest, WindowEqualsThePartOfTheWhole) {
  KeyedRandom random(11, 0, 0, 0);
  for (int i = 0; i < 200; ++i) {
    const auto side = [&](std::uint64_t most) { return static_cast<std::uint32_t>(1 + random.below(most)); };
    const Dimensions from{side(90), side(90)};
    const Dimensions to{side(70) + 91, side(70)};
    const Bytes8 picture = noise(std::size_t{from.width} * from.height * 4, 100 + static_cast<unsigned>(i));
    Box window{side(to.width) - 1, side(to.height) - 1, 0, 0};
    window.width = side(to.width - window.x);
    window.height = side(to.height - window.y);
    const Bytes8 whole = resized(picture, from, to, {0, 0, to.width, to.height});
    const Bytes8 part = resized(picture, from, to, window);
    for (std::uint32_t y = 0; y < window.height; ++y) {
      const auto* expected = whole.data() + (std::size_t{window.y + y} * to.width + window.x) * 3;
      const auto* got = part.data() + std::size_t{y} * window.width * 3;
      ASSERT_TRUE(std::equal(got, got + std::size_t{window.width} * 3, expected)) << "picture " << i << ", row " << y;
    }
  }
}

// What the stages take must be what they say, each for itself: a runner adds it up.
TEST(ResizeTest, StagesShareOneScratch) {
  for (std::uint32_t side = 1; side < 40; ++side) {
    Geometry geometry;
    geometry.begin({side, side});
    ASSERT_TRUE(geometry.resize({side + 3, side + 1}));
    ASSERT_TRUE(geometry.resize({side, side + 7}));
    geometry.settle();
    Bytes bytes = 0;
    for (const ResizeStep& step : geometry.steps()) bytes += ResizeStage::bytes(step);
    Scratch scratch;
    ASSERT_TRUE(scratch.reset(bytes));
    Collect collect(side);
    ResizeStage stages[2];
    for (std::size_t i = 0; i < 2; ++i) stages[i].prepare(geometry.steps()[i], scratch, collect);
    EXPECT_EQ(bytes % Scratch::kAlignment, 0u);
  }
}

}  // namespace
}  // namespace foreload
