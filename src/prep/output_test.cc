#include "prep/output.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace foreload {
namespace {

float half_value(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                             : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  if (exponent == 31) size = std::numeric_limits<float>::infinity();
  return half & 0x8000 ? -size : size;
}

TEST(HalfTest, EveryHalfComesBack) {
  for (unsigned half = 0; half < 0x10000; ++half) {
    if ((half & 0x7c00) == 0x7c00 && (half & 0x3ff) != 0) continue;
    EXPECT_EQ(to_half(half_value(static_cast<std::uint16_t>(half))), half);
  }
}

TEST(HalfTest, MiddleGoesToTheEvenNeighbour) {
  for (unsigned half = 0; half < 0x7bff; ++half) {
    const float low = half_value(static_cast<std::uint16_t>(half));
    const float high = half_value(static_cast<std::uint16_t>(half + 1));
    const float middle = low + (high - low) / 2;
    EXPECT_EQ(to_half(middle), half % 2 == 0 ? half : half + 1);
    EXPECT_EQ(to_half(std::nextafter(middle, 0.0f)), half);
    EXPECT_EQ(to_half(std::nextafter(middle, 1e9f)), half + 1);
  }
  EXPECT_EQ(to_half(65519.99f), 0x7bff);
  EXPECT_EQ(to_half(65520.0f), 0x7c00);
  EXPECT_EQ(to_half(std::numeric_limits<float>::quiet_NaN()) & 0x7e00, 0x7e00);
}

TEST(OutputTablesTest, ElementsAreTorchvisions) {
  const auto tables = OutputTables::make(DType::kF32, Layout::kNchw, kImageNet);
  EXPECT_EQ(tables.f32[0][255], (1.0f - 0.485f) / 0.229f);
  EXPECT_EQ(tables.f32[2][100], (100.0f / 255.0f - 0.406f) / 0.225f);
  EXPECT_EQ(tables.f16[1][7], to_half((7.0f / 255.0f - 0.456f) / 0.224f));
  EXPECT_EQ(OutputTables::make(DType::kF32, Layout::kNchw, std::nullopt).f32[1][51], 0.2f);
}

// A row of three pixels in a view of 5 × 2 with a black column left and right and a black row above.
class WriterTest : public testing::Test {
 protected:
  std::vector<std::uint8_t> written(Layout layout, bool mirrored) {
    View view{AxisView::whole(3), AxisView::whole(1)};
    if (mirrored) view.x.mirror();
    view.x.cut(-1, 5);
    view.y.cut(-1, 2);
    const auto tables = OutputTables::make(DType::kU8, layout, std::nullopt);
    std::vector<std::byte> out(5 * 2 * 3, std::byte{0xee});
    TensorWriter writer;
    writer.prepare(tables, view, out);
    const std::vector<std::uint8_t> row{1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 0};
    writer.push(row.data());
    std::vector<std::uint8_t> numbers(out.size());
    std::memcpy(numbers.data(), out.data(), out.size());
    return numbers;
  }
};

TEST_F(WriterTest, PlanesAndPixels) {
  EXPECT_EQ(written(Layout::kNchw, false), (std::vector<std::uint8_t>{0, 0, 0, 0, 0, 0, 1, 4, 7, 0,  //
                                                                      0, 0, 0, 0, 0, 0, 2, 5, 8, 0,  //
                                                                      0, 0, 0, 0, 0, 0, 3, 6, 9, 0}));
  EXPECT_EQ(written(Layout::kNhwc, false), (std::vector<std::uint8_t>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                                                                      0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0}));
}

TEST_F(WriterTest, MirroredRowsAreReversed) {
  const auto pixels = written(Layout::kNhwc, true);
  EXPECT_EQ(std::vector<std::uint8_t>(pixels.begin() + 18, pixels.begin() + 27),
            (std::vector<std::uint8_t>{7, 8, 9, 4, 5, 6, 1, 2, 3}));
}

}  // namespace
}  // namespace foreload
