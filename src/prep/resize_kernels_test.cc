// Every kernel against its plain twin, on every instruction set that this machine runs.
#include "prep/resize_kernels.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"

namespace foreload {
namespace {

using Bytes8 = std::vector<std::uint8_t>;

Bytes8 noise(std::size_t count, std::uint64_t seed) {
  KeyedRandom random(seed, 0, 0, 0);
  Bytes8 bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next_u32());
  return bytes;
}

// Calls check() once for each set of kernels, the best one last, and says which they were.
template <typename Check>
void on_every_target(Check check) {
  const std::int64_t all = hwy::SupportedTargets();
  std::string names;
  for (std::int64_t rest = all; rest != 0;) {
    const auto target = static_cast<std::int64_t>(
        std::uint64_t{1} << (63 - hwy::Num0BitsAboveMS1Bit_Nonzero64(static_cast<std::uint64_t>(rest))));
    rest &= ~target;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    const std::string name = pixel_kernels().name;
    if (names.find(name) == std::string::npos) {
      names += " " + name;
      SCOPED_TRACE(name);
      check();
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  testing::Test::RecordProperty("kernels", names);
  std::printf("kernels:%s\n", names.c_str());
}

// Rows of planes, as the pass along x leaves them.
struct PlaneRows {
  std::size_t stride;
  std::vector<std::uint32_t> words;
  std::vector<const std::uint32_t*> rows;

  PlaneRows(std::size_t width, std::size_t count) : stride((width + kMostLanes - 1) / kMostLanes * kMostLanes) {
    const Bytes8 values = noise(stride * 3 * count, width);
    for (const std::uint8_t value : values) words.push_back(value * kSpread);
    for (std::size_t i = 0; i < count; ++i) rows.push_back(words.data() + i * stride * 3);
  }
};

std::vector<std::uint32_t> row_planes(const PixelKernels& kernels, const AxisWindow& axis, const Bytes8& in,
                                      bool mirrored) {
  Scratch scratch;
  EXPECT_TRUE(scratch.reset(RowWeights::bytes(axis)));
  const RowWeights weights = RowWeights::make(axis, {kernels.lanes, mirrored}, scratch);
  const auto width = static_cast<std::size_t>(axis.out.size());
  const std::size_t stride = (width + kMostLanes - 1) / kMostLanes * kMostLanes;
  std::vector<std::uint32_t> out(stride * 3);
  kernels.row({in.data(), {out.data(), stride}, weights});
  std::vector<std::uint32_t> visible;
  for (std::size_t c = 0; c < 3; ++c) visible.insert(visible.end(), &out[c * stride], &out[c * stride] + width);
  return visible;
}

TEST(KernelsTest, RowsEqualTheTwins) {
  on_every_target([] {
    KeyedRandom random(12, 0, 0, 0);
    for (int i = 0; i < 120; ++i) {
      const auto from = static_cast<std::uint32_t>(1 + random.below(i % 2 == 0 ? 500 : 2000));
      const auto to = static_cast<std::uint32_t>(1 + random.below(400));
      if (from == to) continue;
      const auto first = static_cast<std::int64_t>(random.below(to));
      const auto end = first + 1 + static_cast<std::int64_t>(random.below(to - static_cast<std::uint32_t>(first)));
      const Taps low = taps_of({from, to, {}, {}}, static_cast<std::uint32_t>(first));
      const Taps high = taps_of({from, to, {}, {}}, static_cast<std::uint32_t>(end - 1));
      const AxisWindow axis{from, to, {low.first, std::int64_t{high.first} + high.count}, {first, end}};
      const Bytes8 in = noise(row_bytes(static_cast<std::uint64_t>(axis.in.size())), static_cast<unsigned>(i));
      const auto straight = row_planes(plain_kernels(), axis, in, false);
      ASSERT_EQ(row_planes(pixel_kernels(), axis, in, false), straight) << from << " to " << to;
      auto turned = straight;
      for (std::size_t c = 0; c < 3; ++c) {
        const auto plane = turned.begin() + static_cast<std::ptrdiff_t>(c) * axis.out.size();
        std::reverse(plane, plane + axis.out.size());
      }
      ASSERT_EQ(row_planes(pixel_kernels(), axis, in, true), turned) << from << " to " << to << ", mirrored";
    }
  });
}

TEST(KernelsTest, SplitRowsEqualTheTwins) {
  on_every_target([] {
    for (std::size_t width = 1; width < 70; ++width) {
      const Bytes8 in = noise(row_bytes(width), width);
      const std::size_t stride = (width + kMostLanes - 1) / kMostLanes * kMostLanes;
      for (const bool mirrored : {false, true}) {
        std::vector<std::uint32_t> plain(stride * 3), fast(stride * 3);
        plain_kernels().split({in.data(), width, mirrored, {plain.data(), stride}});
        pixel_kernels().split({in.data(), width, mirrored, {fast.data(), stride}});
        ASSERT_EQ(plain, fast) << width;
      }
    }
  });
}

TEST(KernelsTest, ColumnsEqualTheTwins) {
  on_every_target([] {
    KeyedRandom random(13, 0, 0, 0);
    for (int i = 0; i < 60; ++i) {
      const auto from = static_cast<std::uint32_t>(1 + random.below(900));
      const auto to = static_cast<std::uint32_t>(1 + random.below(200));
      const auto width = static_cast<std::size_t>(1 + random.below(i % 3 == 0 ? 20 : 300));
      const AxisWindow axis{from, to, {0, from}, {0, to}};
      Scratch scratch;
      ASSERT_TRUE(scratch.reset(ColumnWeights::bytes(axis)));
      const ColumnWeights weights = ColumnWeights::make(axis, scratch);
      const PlaneRows planes(width, weights.stride);
      for (std::uint32_t place = 0; place < to; place += 7) {
        const ColumnResize job{planes.rows.data(), weights.weights.data() + place * weights.stride,
                               weights.taps[place].count, planes.stride, width};
        Bytes8 plain(row_bytes(width)), fast(row_bytes(width));
        plain_kernels().column(job, plain.data());
        pixel_kernels().column(job, fast.data());
        ASSERT_EQ(plain, fast) << from << " to " << to << " at " << place << ", width " << width;
      }
    }
  });
}

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kU8};
constexpr Layout kLayouts[] = {Layout::kNchw, Layout::kNhwc};

// Every type and layout; the rest of `out` must stay as it was.
template <typename Write>
void expect_same_tensors(std::size_t width, Write write) {
  for (const DType dtype : kTypes) {
    for (const Layout layout : kLayouts) {
      const auto normalize = dtype == DType::kU8 ? std::optional<MeanStd>() : kImageNet;
      const OutputTables tables = OutputTables::make(dtype, layout, normalize);
      EXPECT_EQ(dtype == DType::kF16 || tables.kernels == &pixel_kernels(), true) << "elements are not computed";
      const std::size_t plane = width + 5;
      std::vector<std::byte> plain(plane * 3 * dtype_size(dtype), std::byte{0xee});
      auto fast = plain;
      write(plain_kernels(), TensorRow{tables, plain.data(), plane});
      write(*tables.kernels, TensorRow{tables, fast.data(), plane});
      ASSERT_EQ(plain, fast) << dtype_name(dtype) << ", width " << width;
    }
  }
}

TEST(KernelsTest, TensorRowsEqualTheTwins) {
  on_every_target([] {
    for (const std::size_t width : {1u, 3u, 4u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 33u, 224u, 299u}) {
      const Bytes8 in = noise(row_bytes(width), width);
      for (const bool mirrored : {false, true}) {
        expect_same_tensors(width, [&](const PixelKernels& kernels, const TensorRow& row) {
          kernels.write({in.data(), width, mirrored}, row);
        });
      }
      const AxisWindow axis{300, 224, {0, 300}, {0, 224}};
      Scratch scratch;
      ASSERT_TRUE(scratch.reset(ColumnWeights::bytes(axis)));
      const ColumnWeights weights = ColumnWeights::make(axis, scratch);
      const PlaneRows planes(width, weights.stride);
      const ColumnResize job{planes.rows.data(), weights.weights.data() + 5 * weights.stride, weights.taps[5].count,
                             planes.stride, width};
      expect_same_tensors(
          width, [&](const PixelKernels& kernels, const TensorRow& row) { kernels.column_to_tensor(job, row); });
    }
  });
}

// What stands between a resize and a tensor and hides the one from the other.
class Screen final : public RowSink {
 public:
  explicit Screen(RowSink& next) : next_(next) {}
  void push(const std::uint8_t* row) override { next_.push(row); }

 private:
  RowSink& next_;
};

struct Shape {
  Dimensions from, to;
  std::int64_t left, top;  // of a cut afterwards: outside of the picture is black
  Dimensions cut;
  bool mirrored;
};

std::vector<std::byte> tensor(const Shape& shape, const OutputTables& tables, bool fused) {
  Geometry geometry;
  geometry.begin(shape.from);
  EXPECT_TRUE(geometry.resize(shape.to));
  EXPECT_TRUE(geometry.cut(shape.left, shape.top, shape.cut));
  if (shape.mirrored) geometry.mirror();
  geometry.settle();
  std::vector<std::byte> out(std::size_t{shape.cut.width} * shape.cut.height * 3 * dtype_size(tables.dtype));
  TensorWriter writer;
  writer.prepare(tables, geometry.last_view(), out);
  Screen screen(writer);
  Scratch scratch;
  EXPECT_TRUE(scratch.reset(ResizeStage::bytes(geometry.steps()[0])));
  ResizeStage stage;
  stage.prepare(geometry.steps()[0], scratch, fused ? static_cast<RowSink&>(writer) : screen);
  const Box box = geometry.source_box();
  const Bytes8 picture = noise(row_bytes(shape.from.width) * shape.from.height, 77);
  for (std::uint32_t y = 0; y < box.height; ++y) {
    Bytes8 row(row_bytes(box.width));
    std::memcpy(row.data(), &picture[(box.y + y) * row_bytes(shape.from.width) + box.x * kPixelBytes],
                box.width * kPixelBytes);
    stage.push(row.data());
  }
  return out;
}

TEST(KernelsTest, WritingFromTheResizeEqualsWritingItsRows) {
  on_every_target([] {
    KeyedRandom random(14, 0, 0, 0);
    for (int i = 0; i < 40; ++i) {
      const auto side = [&](std::uint64_t most) { return static_cast<std::uint32_t>(1 + random.below(most)); };
      Shape shape{{side(90), side(60)}, {side(70), side(50)}, 0, 0, {side(60), side(40)}, i % 2 == 0};
      if (i % 5 == 0) shape.to.width = shape.from.width;
      if (i % 5 == 1) shape.to.height = shape.from.height;
      if (shape.to.width == shape.from.width && shape.to.height == shape.from.height) continue;
      shape.left = static_cast<std::int64_t>(random.below(shape.to.width)) - 4;
      shape.top = static_cast<std::int64_t>(random.below(shape.to.height)) - 4;
      for (const DType dtype : kTypes) {
        const Layout layout = kLayouts[i / 2 % 2];
        const OutputTables tables = OutputTables::make(dtype, layout, std::nullopt);
        ASSERT_EQ(tensor(shape, tables, true), tensor(shape, tables, false)) << "shape " << i;
      }
    }
  });
}

// Rounded weights of so many taps may add up to more than one: white must not become black.
TEST(KernelsTest, VeryLongFiltersStayWhite) {
  Geometry geometry;
  geometry.begin({60000, 1});
  ASSERT_TRUE(geometry.resize({3, 1}));
  geometry.settle();
  const OutputTables tables = OutputTables::make(DType::kU8, Layout::kNchw, std::nullopt);
  std::vector<std::byte> out(9);
  TensorWriter writer;
  writer.prepare(tables, geometry.last_view(), out);
  Scratch scratch;
  ASSERT_TRUE(scratch.reset(ResizeStage::bytes(geometry.steps()[0])));
  ResizeStage stage;
  stage.prepare(geometry.steps()[0], scratch, writer);
  const Bytes8 row(row_bytes(60000), 255);
  stage.push(row.data());
  EXPECT_EQ(out, std::vector<std::byte>(9, std::byte{255}));
}

// Whatever mean and deviation are asked for, the kernels that are used give what the tables say.
TEST(OutputTablesTest, KernelsGiveTheElementsOfAnyNormalisation) {
  on_every_target([] {
    KeyedRandom random(15, 0, 0, 0);
    for (int i = 0; i < 50; ++i) {
      MeanStd normalize;
      for (std::size_t c = 0; c < 3; ++c) {
        normalize.mean[c] = static_cast<double>(random.next_u32()) / 4294967296.0;
        normalize.std[c] = (1 + static_cast<double>(random.next_u32())) / 4294967296.0 * (i % 3 == 0 ? 1e-6 : 1.0);
      }
      for (const DType dtype : {DType::kF32, DType::kF16}) {
        const OutputTables tables = OutputTables::make(dtype, Layout::kNchw, normalize);
        Bytes8 in(row_bytes(256));
        for (std::size_t v = 0; v < 256 * kPixelBytes; ++v) in[v] = static_cast<std::uint8_t>(v / kPixelBytes);
        std::vector<std::byte> out(256 * 3 * dtype_size(dtype));
        tables.kernels->write({in.data(), 256, false}, {tables, out.data(), 256});
        const void* expected = dtype == DType::kF32 ? static_cast<const void*>(&tables.f32) : &tables.f16;
        ASSERT_EQ(std::memcmp(out.data(), expected, out.size()), 0) << "normalisation " << i;
      }
    }
  });
}

}  // namespace
}  // namespace foreload
