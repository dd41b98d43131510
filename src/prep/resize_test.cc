#include "prep/resize.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "prep/resize_kernels.h"

namespace foreload {
namespace {

using Bytes8 = std::vector<std::uint8_t>;

class Collect final : public RowSink {
 public:
  explicit Collect(std::size_t width) : width_(width) {}
  void push(const std::uint8_t* row) override { bytes.insert(bytes.end(), row, row + width_ * kPixelBytes); }
  Bytes8 bytes;

 private:
  std::size_t width_;
};

// Resizes a picture of four-byte pixels and returns a window of the result.
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

Bytes8 gray_picture(const Bytes8& values) {
  Bytes8 picture;
  for (const auto value : values) picture.insert(picture.end(), 4, value);
  return picture;
}

Bytes8 noise(std::size_t count, std::uint64_t seed) {
  KeyedRandom random(seed, 0, 0, 0);
  Bytes8 bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next_u32());
  return bytes;
}

// What Pillow 9.4 gives; tests/pixels.py compares much more.
TEST(ResizeTest, EqualsPillow) {
  const Bytes8 row = gray_picture({10, 200, 30, 250, 90});
  EXPECT_EQ(resized(row, {5, 1}, {3, 1}, {0, 0, 3, 1}), gray_picture({91, 117, 159}));
  EXPECT_EQ(resized(row, {5, 1}, {8, 1}, {0, 0, 8, 1}), gray_picture({10, 93, 189, 83, 99, 236, 160, 90}));
  EXPECT_EQ(resized(row, {1, 5}, {1, 2}, {0, 0, 1, 2}), gray_picture({103, 147}));
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
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (i % 4 != 3) hash = (hash ^ result[i]) * 0x100000001b3;
  }
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
      EXPECT_EQ(small, Bytes8(std::size_t{side} * side * 4, value)) << side;
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
      const auto* expected = whole.data() + (std::size_t{window.y + y} * to.width + window.x) * 4;
      const auto* got = part.data() + std::size_t{y} * window.width * 4;
      ASSERT_TRUE(std::equal(got, got + std::size_t{window.width} * 4, expected)) << "picture " << i << ", row " << y;
    }
  }
}

TEST(ResizeTest, BestKernelsEqualThePlainOnes) {
  KeyedRandom random(12, 0, 0, 0);
  const ResizeKernels& best = best_resize_kernels();
  RecordProperty("kernels", best.name);
  for (int i = 0; i < 300; ++i) {
    const auto from = static_cast<std::uint32_t>(1 + random.below(2000));
    const auto to = static_cast<std::uint32_t>(1 + random.below(400));
    if (from == to) continue;
    const AxisWindow axis{from, to, {0, from}, {0, to}};
    Scratch scratch;
    ASSERT_TRUE(scratch.reset(RowWeights::bytes(axis) + ColumnWeights::bytes(axis)));
    const RowWeights row_weights = RowWeights::make(axis, scratch);
    const Bytes8 row = noise(row_bytes(from), static_cast<unsigned>(i));
    Bytes8 plain(row_bytes(to) + kRowSlack), fast(row_bytes(to) + kRowSlack);
    plain_resize_kernels().row({row.data(), plain.data(), row_weights});
    best.row({row.data(), fast.data(), row_weights});
    ASSERT_EQ(plain, fast) << from << " to " << to;

    const ColumnWeights column_weights = ColumnWeights::make(axis, scratch);
    const Bytes8 ring = noise(std::size_t{128} * column_weights.stride, static_cast<unsigned>(i));
    const auto rows = static_cast<std::uint32_t>(column_weights.stride);
    for (std::uint32_t place = 0; place < to; place += 7) {
      const Taps taps = column_weights.taps[place];
      ColumnResize job{ring.data(), 128,          rows, taps.first % rows, column_weights.weights.data() + place * rows,
                       taps.count,  plain.data(), 128};
      plain.resize(128);
      fast.resize(128);
      job.out = plain.data();
      plain_resize_kernels().column(job);
      job.out = fast.data();
      best.column(job);
      ASSERT_EQ(plain, fast) << from << " to " << to << " at " << place;
    }
  }
}

}  // namespace
}  // namespace foreload
