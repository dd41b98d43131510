#include "prep/chain.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "base/random.h"
#include "prep/crop.h"
#include "prep/jpeg_samples.h"
#include "prep/png_samples.h"
#include "prep/resize.h"
#include "prep/test_pictures.h"

namespace foreload {
namespace {

using Bytes8 = std::vector<std::uint8_t>;

Chain compiled(const ChainOptions& options) {
  auto chain = Chain::compile(options);
  if (!chain) ADD_FAILURE() << chain.error().message;
  return std::move(chain).value();
}

std::string refusal(const ChainOptions& options) {
  const auto chain = Chain::compile(options);
  if (chain) return "accepted";
  EXPECT_EQ(chain.error().code, Code::kInvalid);
  return chain.error().message;
}

Bytes8 run(ChainRunner& runner, const Chain& chain, std::span<const std::byte> sample, const PrepKey& key = {}) {
  const auto bytes = runner.begin(sample, key);
  EXPECT_TRUE(bytes) << bytes.error().message;
  std::vector<std::byte> out(chain.output().bytes());
  const Status status = runner.finish(out);
  EXPECT_TRUE(status) << status.error().message;
  Bytes8 numbers(out.size());
  std::memcpy(numbers.data(), out.data(), out.size());
  return numbers;
}

Bytes8 run(const ChainOptions& options, std::span<const std::byte> sample, const PrepKey& key = {}) {
  const Chain chain = compiled(options);
  ChainRunner runner(chain);
  return run(runner, chain, sample, key);
}

TEST(ChainTest, OutputIsDeclaredOnce) {
  EXPECT_EQ(compiled({{random_resized_crop(20, 30)}, DType::kF32, Layout::kNchw, {}}).output(),
            (TensorSpec{DType::kF32, {3, 20, 30}}));
  EXPECT_EQ(compiled({{resize(40), center_crop(20, 30)}, DType::kU8, Layout::kNhwc, {}}).output(),
            (TensorSpec{DType::kU8, {20, 30, 3}}));
  EXPECT_EQ(compiled({{resize(40, 20), resize(10)}, DType::kF16, Layout::kNhwc, {}}).output(),
            (TensorSpec{DType::kF16, {20, 10, 3}}));
  EXPECT_EQ(compiled({.transforms = {array(DType::kI64, {4, 5})}}).output(), (TensorSpec{DType::kI64, {4, 5}}));
  EXPECT_EQ(compiled({.transforms = {array(DType::kI64, {4, 5})}}).output().bytes(), 160u);
}

TEST(ChainTest, ContradictionsAreRefusedWithAdvice) {
  EXPECT_NE(refusal({}).find("empty"), std::string::npos);
  EXPECT_NE(refusal({.transforms = std::vector<Transform>(65, resize(8, 8))}).find("65 transforms"), std::string::npos);
  EXPECT_NE(refusal({.transforms = {resize(256)}}).find("center_crop(224)"), std::string::npos);
  EXPECT_NE(refusal({.transforms = {center_crop(9), normalize(kImageNet)}, .dtype = DType::kU8}).find("u8"),
            std::string::npos);
  EXPECT_NE(refusal({.transforms = {center_crop(9)}, .dtype = DType::kI64}).find("i64"), std::string::npos);
  EXPECT_NE(refusal({.transforms = {normalize(kImageNet), center_crop(9)}}).find("after normalize"), std::string::npos);
  EXPECT_NE(refusal({.transforms = {array(DType::kU8, {3}), center_crop(9)}}).find("combined"), std::string::npos);
  EXPECT_NE(refusal({.transforms = {{"blur", {}}}}).find("these exist: random_resized_crop"), std::string::npos);
  EXPECT_NE(refusal({.transforms = {{"resize", {{"sise", 5.0}}}}}).find("it accepts: size"), std::string::npos);
}

// --- the whole chain against one op after the other, each on the whole picture ---

class Collect final : public RowSink {
 public:
  explicit Collect(Picture& picture) : picture_(picture) {}
  void push(const std::uint8_t* row) override {
    for (std::uint32_t x = 0; x < picture_.size.width; ++x)
      picture_.rgb.insert(picture_.rgb.end(), row + 4 * x, row + 4 * x + 3);
  }

 private:
  Picture& picture_;
};

Picture whole_resize(const Picture& from, Dimensions to) {
  Geometry geometry;
  geometry.begin(from.size);
  EXPECT_TRUE(geometry.resize(to));
  geometry.settle();
  if (geometry.steps().empty()) return from;
  Picture result{to, {}};
  Collect collect(result);
  Scratch scratch;
  EXPECT_TRUE(scratch.reset(ResizeStage::bytes(geometry.steps()[0])));
  ResizeStage stage;
  stage.prepare(geometry.steps()[0], scratch, collect);
  for (std::uint32_t y = 0; y < from.size.height; ++y) {
    Bytes8 row(row_bytes(from.size.width));
    for (std::uint32_t x = 0; x < from.size.width; ++x) {
      for (unsigned c = 0; c < 3; ++c) row[x * 4 + c] = from.at(x, y, c);
    }
    stage.push(row.data());
  }
  return result;
}

Picture whole_cut(const Picture& from, std::int64_t left, std::int64_t top, Dimensions size) {
  Picture result{size, {}};
  for (std::int64_t y = top; y < top + size.height; ++y) {
    for (std::int64_t x = left; x < left + size.width; ++x) {
      const bool inside = x >= 0 && y >= 0 && x < from.size.width && y < from.size.height;
      for (unsigned c = 0; c < 3; ++c) result.rgb.push_back(inside ? from.at(x, y, c) : 0);
    }
  }
  return result;
}

Picture mirror(const Picture& from) {
  Picture result{from.size, {}};
  for (std::int64_t y = 0; y < from.size.height; ++y) {
    for (std::int64_t x = from.size.width - 1; x >= 0; --x) {
      for (unsigned c = 0; c < 3; ++c) result.rgb.push_back(from.at(x, y, c));
    }
  }
  return result;
}

Picture upside_down(const Picture& from) {
  Picture result{from.size, {}};
  for (std::int64_t y = from.size.height - 1; y >= 0; --y) {
    for (std::int64_t x = 0; x < from.size.width; ++x) {
      for (unsigned c = 0; c < 3; ++c) result.rgb.push_back(from.at(x, y, c));
    }
  }
  return result;
}

struct Step {
  Transform transform;
  Picture after;
};

Step random_step(const Picture& from, std::uint32_t index, const PrepKey& key, KeyedRandom& random) {
  const Dimensions size{static_cast<std::uint32_t>(1 + random.below(90)),
                        static_cast<std::uint32_t>(1 + random.below(90))};
  switch (random.below(6)) {
    case 4:
      return {random_vertical_flip(1), upside_down(from)};
    case 5: {
      const auto border = static_cast<unsigned>(random.below(9));
      return {pad(border), whole_cut(from, -std::int64_t{border}, -std::int64_t{border},
                                     {from.size.width + 2 * border, from.size.height + 2 * border})};
    }
    case 0:
      return {resize(size.height, size.width), whole_resize(from, size)};
    case 1: {
      const auto offset = [](std::int64_t whole, std::int64_t part) {
        if (part > whole) return -((part - whole) / 2);
        const std::int64_t down = (whole - part) / 2;
        return (whole - part) % 2 == 1 && down % 2 == 1 ? down + 1 : down;
      };
      return {center_crop(size.height, size.width),
              whole_cut(from, offset(from.size.width, size.width), offset(from.size.height, size.height), size)};
    }
    case 2:
      return {random_flip(1), mirror(from)};
    default: {
      KeyedRandom crop(key.seed, key.epoch, key.position, index);
      const Box box = draw_crop(CropRange::make(0.08, 1, 3.0 / 4.0, 4.0 / 3.0), from.size, crop);
      return {random_resized_crop(size.height, size.width), whole_resize(cut_out(from, box), size)};
    }
  }
}

TEST(ChainTest, EqualsOneOpAfterTheOtherOnTheWholePicture) {
  constexpr std::uint64_t kSeed = 31;
  const auto kinds = jpeg_kinds();
  const auto decoder = image_formats()[0].make();
  for (unsigned i = 0; i < 400; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", chain " << i);
    KeyedRandom random(kSeed, 0, i, 0);
    const auto jpeg = make_jpeg(kinds[random.below(kinds.size())]);
    Picture picture = *decode_picture(*decoder, jpeg);
    const PrepKey key{kSeed, 1, i};
    ChainOptions options{.dtype = DType::kU8, .layout = Layout::kNhwc};
    const auto ops = static_cast<std::uint32_t>(1 + random.below(5));
    for (std::uint32_t op = 0; op < ops; ++op) {
      Step step = random_step(picture, op, key, random);
      options.transforms.push_back(std::move(step.transform));
      picture = std::move(step.after);
    }
    options.transforms.push_back(center_crop(picture.size.height, picture.size.width));
    ASSERT_EQ(run(options, jpeg, key), picture.rgb) << chain_text(options.transforms);
  }
}

TEST(ChainTest, SampleDependsOnlyOnItsKey) {
  const auto jpeg = make_jpeg({.width = 300, .height = 200});
  const auto png = make_png({.width = 90, .height = 80});
  const Chain chain = compiled({.transforms = {random_resized_crop(32), random_flip(), normalize(kImageNet)}});
  ChainRunner one(chain), other(chain);
  const Bytes8 first = run(one, chain, jpeg, {1, 2, 3});
  run(other, chain, png, {9, 9, 9});
  EXPECT_EQ(run(other, chain, jpeg, {1, 2, 3}), first);
  EXPECT_NE(run(one, chain, jpeg, {2, 2, 3}), first);
  EXPECT_NE(run(one, chain, jpeg, {1, 3, 3}), first);
  EXPECT_NE(run(one, chain, jpeg, {1, 2, 4}), first);
}

TEST(ChainTest, ThreadsAgree) {
  const auto jpeg = make_jpeg({.width = 200, .height = 150, .sampling = {2, 2, 1, 1, 1, 1}});
  const auto png = make_png({.width = 90, .height = 80});
  const Chain chain = compiled({.transforms = {random_resized_crop(32), random_flip()}});
  std::vector<Bytes8> results(4);
  {
    std::vector<std::jthread> threads;
    for (auto& result : results) {
      threads.emplace_back([&] {
        ChainRunner runner(chain);
        for (Position p = 0; p < 40; ++p) {
          const Bytes8 out = run(runner, chain, p % 2 == 0 ? jpeg : png, {3, 1, p});
          result.insert(result.end(), out.begin(), out.end());
        }
      });
    }
  }
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST(ChainTest, FlipsHalfOfTheSamples) {
  const auto jpeg = make_jpeg({.width = 16, .height = 16});
  const Chain chain = compiled({{center_crop(16), random_flip()}, DType::kU8, Layout::kNhwc, {}});
  ChainRunner runner(chain);
  const Bytes8 plain = run({{center_crop(16)}, DType::kU8, Layout::kNhwc, {}}, jpeg);
  int flipped = 0;
  for (Position p = 0; p < 2000; ++p) flipped += run(runner, chain, jpeg, {5, 0, p}) != plain;
  EXPECT_NEAR(flipped, 1000, 110);
}

TEST(ChainTest, ScratchIsCountedReusedAndFreed) {
  const auto jpeg = make_jpeg({.width = 600, .height = 400});
  const Chain chain = compiled({.transforms = {random_resized_crop(32)}});
  ChainRunner runner(chain);
  EXPECT_EQ(runner.scratch_bytes(), 0u);
  const auto needed = runner.begin(jpeg, {});
  ASSERT_TRUE(needed);
  std::vector<std::byte> out(chain.output().bytes());
  ASSERT_TRUE(runner.finish(out));
  const Bytes held = runner.scratch_bytes();
  EXPECT_GT(held, 0u);
  EXPECT_LE(held, *needed);
  run(runner, chain, jpeg, {});
  EXPECT_EQ(runner.scratch_bytes(), held);
  runner.trim(held);
  EXPECT_EQ(runner.scratch_bytes(), held);
  runner.trim(held - 1);
  EXPECT_EQ(runner.scratch_bytes(), 0u);
  run(runner, chain, jpeg, {});
  EXPECT_GT(chain.runner_bytes(), 0u);
}

TEST(ChainTest, ProgressiveNeedsItsCoefficients) {
  const Chain chain = compiled({.transforms = {random_resized_crop(32)}});
  ChainRunner runner(chain);
  const auto baseline = runner.begin(make_jpeg({.width = 640, .height = 480}), {});
  ASSERT_TRUE(baseline);
  const auto progressive = runner.begin(make_jpeg({.width = 640, .height = 480, .progressive = true}), {});
  ASSERT_TRUE(progressive);
  EXPECT_GT(*progressive, *baseline + 640u * 480 * 3 * 2 - 1);
}

TEST(ChainTest, DimensionsAndDamageAreOfTheLastSample) {
  const Chain chain = compiled({.transforms = {center_crop(32)}});
  ChainRunner runner(chain);
  run(runner, chain, make_png({.width = 55, .height = 44}));
  EXPECT_EQ(runner.dimensions().width, 55u);
  EXPECT_EQ(runner.dimensions().height, 44u);
  auto jpeg = make_jpeg({.width = 200, .height = 100});
  jpeg[jpeg.size() / 3] = std::byte{0xff};
  jpeg[jpeg.size() / 3 + 1] = std::byte{0xd9};
  run(runner, chain, jpeg);
  EXPECT_EQ(runner.dimensions().width, 200u);
  EXPECT_TRUE(runner.damaged());
  run(runner, chain, make_jpeg({}));
  EXPECT_FALSE(runner.damaged());
}

TEST(ChainTest, BadSamplesSayWhy) {
  const Chain chain =
      compiled({.transforms = {center_crop(32)}, .limits = {.sample_bytes = 100'000, .pixels = 10'000}});
  ChainRunner runner(chain);
  const auto reason = [&](std::span<const std::byte> sample) {
    const auto bytes = runner.begin(sample, {});
    if (bytes) return std::string("accepted");
    EXPECT_EQ(bytes.error().code, Code::kBadSample);
    return bytes.error().message;
  };
  const std::vector<std::byte> text(50, std::byte{'a'});
  EXPECT_NE(reason({}).find("empty"), std::string::npos);
  EXPECT_NE(reason(text).find("begins with 61 61 61 61; known are JPEG, PNG"), std::string::npos) << reason(text);
  EXPECT_NE(reason(std::vector<std::byte>(100'001)).find("100,001 bytes"), std::string::npos);
  EXPECT_NE(reason(make_jpeg({.width = 101, .height = 100})).find("10,100 pixels, more than the limit of 10,000"),
            std::string::npos);
  EXPECT_EQ(reason(make_jpeg({.width = 100, .height = 100})), "accepted");
}

TEST(ChainTest, ArraysPassThrough) {
  std::vector<std::byte> sample(24);
  for (std::size_t i = 0; i < sample.size(); ++i) sample[i] = static_cast<std::byte>(i);
  const Bytes8 out = run({.transforms = {array(DType::kF32, {2, 3}, true)}}, sample);
  EXPECT_EQ(std::memcmp(out.data(), sample.data(), 24), 0);
}

TEST(DefaultChainTest, FollowsTheFirstSample) {
  const std::vector<Transform> images{random_resized_crop(224), random_flip(), normalize(kImageNet)};
  EXPECT_EQ(default_chain(make_jpeg({})), images);
  EXPECT_EQ(default_chain(make_png({})), images);
  const std::string text = std::string("\x93NUMPY\x01\0", 8) + std::string("\x3d\0", 2) +
                           "{'descr': '<i2', 'fortran_order': False, 'shape': (4, 5), }  \n";
  EXPECT_EQ(default_chain(std::as_bytes(std::span(text))), (std::vector<Transform>{array(DType::kI16, {4, 5})}));
  EXPECT_TRUE(default_chain(std::as_bytes(std::span("plain text", 10))).empty());
  EXPECT_TRUE(default_chain({}).empty());
}

TEST(ImageDimensionsTest, ComeFromTheHeader) {
  const auto jpeg = image_dimensions(make_jpeg({.width = 7, .height = 9}));
  ASSERT_TRUE(jpeg);
  EXPECT_EQ(jpeg->width, 7u);
  EXPECT_EQ(jpeg->height, 9u);
  EXPECT_FALSE(image_dimensions({}));
}

}  // namespace
}  // namespace foreload
