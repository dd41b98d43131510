// Whole chains with ops that need pixels: stages, memory, independence of runner and thread.
#include <gtest/gtest.h>
#include <png.h>

#include <cstring>
#include <thread>

#include "prep/chain.h"
#include "prep/jpeg_samples.h"
#include "prep/png_samples.h"

namespace foreload {
namespace {

using Bytes8 = std::vector<std::uint8_t>;

std::string refusal(const std::string& text, DType dtype = DType::kF32) {
  const auto transforms = parse_chain(text);
  if (!transforms) return transforms.error().message;
  const auto chain = Chain::compile({.transforms = *transforms, .dtype = dtype});
  if (chain) return "accepted";
  EXPECT_EQ(chain.error().code, Code::kInvalid);
  return chain.error().message;
}

Chain compiled(const std::string& text, DType dtype = DType::kU8, Layout layout = Layout::kNhwc) {
  const auto transforms = parse_chain(text);
  EXPECT_TRUE(transforms) << transforms.error().message;
  auto chain = Chain::compile({.transforms = *transforms, .dtype = dtype, .layout = layout});
  if (!chain) ADD_FAILURE() << chain.error().message;
  return std::move(chain).value();
}

Bytes8 run(ChainRunner& runner, const Chain& chain, std::span<const std::byte> sample, const PrepKey& key) {
  const auto bytes = runner.begin(sample, key);
  EXPECT_TRUE(bytes) << bytes.error().message;
  Bytes8 out(chain.output().bytes());
  const Status status = runner.finish(std::as_writable_bytes(std::span(out)));
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_LE(runner.scratch_bytes(), *bytes) << "begin() announced less than finish() took";
  runner.trim(0);
  return out;
}

Bytes8 run(const std::string& text, std::span<const std::byte> sample, const PrepKey& key = {}) {
  const Chain chain = compiled(text);
  ChainRunner runner(chain);
  return run(runner, chain, sample, key);
}

std::vector<std::byte> encoded(const Bytes8& rgb, unsigned width, unsigned height) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  EXPECT_TRUE(png_image_write_to_memory(&image, nullptr, &size, 0, rgb.data(), 0, nullptr));
  std::vector<std::byte> png(size);
  EXPECT_TRUE(png_image_write_to_memory(&image, png.data(), &size, 0, rgb.data(), 0, nullptr));
  png.resize(size);
  return png;
}

// Every op that needs pixels, with parameters that always do something.
const std::vector<std::string> kPixelOps{
    "color_jitter(0.4, 0.4, 0.4, 0.2)",
    "grayscale",
    "random_grayscale(1)",
    "gaussian_blur(5, sigma=1.5)",
    "random_rotation(20:60)",
    "random_affine(30, translate=0.2:0.2, scale=0.5:1.5, shear=10, interpolation=bilinear, fill=9)",
    "rand_augment(3, 20)",
};

TEST(ChainOpsTest, PixelOpsStandBeforeNormalizeAndErasing) {
  for (const std::string& op : kPixelOps) {
    EXPECT_EQ(refusal(op + ", center_crop(9), normalize"), "accepted") << op;
    EXPECT_NE(refusal("center_crop(9), normalize, " + op).find("after normalize"), std::string::npos) << op;
    EXPECT_NE(refusal("center_crop(9), random_erasing, " + op).find("after random_erasing"), std::string::npos) << op;
  }
  for (const char* op :
       {"random_flip", "random_vertical_flip", "pad(2)", "random_crop(4)", "resize(8)", "center_crop(8)"}) {
    EXPECT_NE(refusal(std::string("center_crop(9), random_erasing, ") + op), "accepted") << op;
  }
  EXPECT_EQ(refusal("center_crop(9), normalize, random_flip, random_vertical_flip, random_erasing"), "accepted");
  EXPECT_EQ(refusal("center_crop(9), random_erasing, normalize, random_erasing"), "accepted");
  EXPECT_NE(refusal("center_crop(9), normalize, normalize").find("twice"), std::string::npos);
}

TEST(ChainOpsTest, SizesThatCanNotWorkAreRefused) {
  EXPECT_NE(refusal("center_crop(9), gaussian_blur(19)").find("too large for 9x9"), std::string::npos);
  EXPECT_EQ(refusal("center_crop(9), gaussian_blur(17)"), "accepted");
  EXPECT_NE(refusal("center_crop(30), random_crop(32)").find("do not hold"), std::string::npos);
  EXPECT_EQ(refusal("center_crop(30), random_crop(32, padding=1)"), "accepted");
  EXPECT_NE(refusal("pad(4)").find("depends on the image"), std::string::npos);
  EXPECT_NE(refusal("center_crop(9), pad(32768)").find("65545x65545"), std::string::npos);
  EXPECT_NE(refusal("center_crop(9), random_erasing(value=0.5)", DType::kU8).find("u8"), std::string::npos);
  EXPECT_EQ(refusal("center_crop(9), random_erasing(value=127)", DType::kU8), "accepted");
  EXPECT_EQ(compiled("center_crop(30:40), pad(1:2:3:4)").output().shape, (std::vector<std::uint64_t>{36, 44, 3}));
}

TEST(ChainOpsTest, PicturesThatAreTooSmallAreBadSamples) {
  const auto reason = [](const std::string& text) {
    const Chain chain = compiled(text);
    ChainRunner runner(chain);
    const auto bytes = runner.begin(make_png({.width = 20, .height = 5}), {});
    if (bytes) return std::string("accepted");
    EXPECT_EQ(bytes.error().code, Code::kBadSample);
    return bytes.error().message;
  };
  EXPECT_NE(reason("gaussian_blur(11), center_crop(9)").find("20x5"), std::string::npos);
  EXPECT_NE(reason("random_crop(9)").find("20x5"), std::string::npos);
  EXPECT_EQ(reason("random_crop(9, pad_if_needed=1)"), "accepted");
  EXPECT_NE(reason("pad(32768), center_crop(9)").find("65556x65541"), std::string::npos);
}

// A chain in one go, and its ops one after the other with a file in between.
TEST(ChainOpsTest, StagesEqualOneOpAfterTheOther) {
  const std::vector<std::string> ops{"random_resized_crop(60:50)",
                                     "color_jitter(0.4, 0.4, 0.4, 0.2)",
                                     "random_crop(48:44, padding=3)",
                                     "gaussian_blur(7)",
                                     "random_rotation(30)",
                                     "random_vertical_flip(0.5)",
                                     "resize(40:52)",
                                     "pad(2, padding_mode=reflect)",
                                     "random_affine(20, interpolation=bilinear)",
                                     "random_flip",
                                     "center_crop(36:50)",
                                     "trivial_augment_wide"};
  const std::vector<std::pair<unsigned, unsigned>> sizes{{60, 50}, {60, 50}, {48, 44}, {48, 44}, {48, 44}, {48, 44},
                                                         {40, 52}, {44, 56}, {44, 56}, {44, 56}, {36, 50}, {36, 50}};
  std::string whole = ops[0];
  for (std::size_t i = 1; i < ops.size(); ++i) whole += ", " + ops[i];
  for (Position p = 0; p < 12; ++p) {
    const PrepKey key{3, 1, p};
    std::vector<std::byte> sample = make_jpeg({.width = 130, .height = 110});
    Bytes8 picture;
    std::string idle;  // keeps the op's index, and so its random numbers
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const auto [height, width] = sizes[i];
      picture = run(idle + ops[i] + ", center_crop(" + std::to_string(height) + ":" + std::to_string(width) + ")",
                    sample, key);
      sample = encoded(picture, width, height);
      idle += "random_flip(0), ";
    }
    EXPECT_EQ(run(whole, make_jpeg({.width = 130, .height = 110}), key), picture) << "position " << p;
  }
}

TEST(ChainOpsTest, OpsThatAreNotAppliedChangeNothing) {
  const auto jpeg = make_jpeg({.width = 120, .height = 90});
  const std::string idle = "random_grayscale(0), random_vertical_flip(0), random_rotation(0), color_jitter, ";
  const Chain plain =
      compiled("random_flip(0), random_flip(0), random_flip(0), random_flip(0), random_resized_crop(32)");
  const Chain with = compiled(idle + "random_resized_crop(32), random_erasing(0)");
  ChainRunner one(plain), other(with);
  const auto bytes = one.begin(jpeg, {1, 2, 3});
  const auto other_bytes = other.begin(jpeg, {1, 2, 3});
  ASSERT_TRUE(bytes && other_bytes);
  EXPECT_EQ(*bytes, *other_bytes) << "no canvas is needed";
  EXPECT_EQ(run(one, plain, jpeg, {1, 2, 3}), run(other, with, jpeg, {1, 2, 3}));
}

TEST(ChainOpsTest, MemoryIsAnnounced) {
  const auto jpeg = make_jpeg({.width = 300, .height = 200});
  for (const std::string& op : kPixelOps) {
    run("random_resized_crop(64), " + op, jpeg, {1, 2, 3});  // run() compares
    run(op + ", random_resized_crop(64), " + op, jpeg, {1, 2, 4});
    run(op + ", " + op + ", random_vertical_flip(1), resize(30), center_crop(31), " + op, jpeg, {1, 2, 5});
  }
  const Chain chain = compiled("grayscale, center_crop(32)");
  ChainRunner runner(chain);
  const auto bytes = runner.begin(jpeg, {});
  ASSERT_TRUE(bytes);
  EXPECT_GE(*bytes, 300u * 200 * 4);
}

TEST(ChainOpsTest, RunnersAndThreadsAgree) {
  const auto jpeg = make_jpeg({.width = 150, .height = 100});
  const auto png = make_png({.width = 90, .height = 80});
  std::string text = "random_resized_crop(48)";
  for (const std::string& op : kPixelOps) text += ", " + op;
  const Chain chain = compiled(text + ", random_vertical_flip, random_erasing");
  std::vector<Bytes8> results(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < results.size(); ++t) {
      threads.emplace_back([&, t] {
        ChainRunner runner(chain);
        if (t > 0) run(runner, chain, png, {9, 9, 9});
        for (Position p = 0; p < 16; ++p) {
          const Bytes8 out = run(runner, chain, p % 2 == 0 ? jpeg : png, {3, 1, p});
          results[t].insert(results[t].end(), out.begin(), out.end());
        }
      });
    }
  }
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST(ChainOpsTest, ErasingSetsOnlyItsBox) {
  const auto jpeg = make_jpeg({.width = 64, .height = 64});
  for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
    const Chain plain = compiled("center_crop(40), normalize", DType::kF32, layout);
    const Chain erasing = compiled("center_crop(40), normalize, random_erasing(1, value=7:8:9)", DType::kF32, layout);
    ChainRunner one(plain), other(erasing);
    const Bytes8 before = run(one, plain, jpeg, {1, 1, 1});
    const Bytes8 after = run(other, erasing, jpeg, {1, 1, 1});
    std::size_t erased = 0;
    for (std::size_t i = 0; i < after.size() / 4; ++i) {
      float was, is;
      std::memcpy(&was, before.data() + i * 4, 4);
      std::memcpy(&is, after.data() + i * 4, 4);
      const std::size_t channel = layout == Layout::kNchw ? i / 1600 : i % 3;
      if (is == was) continue;
      EXPECT_EQ(is, 7.0f + static_cast<float>(channel));
      ++erased;
    }
    EXPECT_GE(erased, 3u * 32);          // 0.02 of the area
    EXPECT_LE(erased, 3u * 1600 * 0.4);  // 0.33 of it, and whole pixels
  }
}

TEST(ChainOpsTest, ErasingBeforeNormalizeIsNormalised) {
  const auto jpeg = make_jpeg({.width = 40, .height = 40});
  const Chain chain =
      compiled("center_crop(40), random_erasing(1, scale=0.9:0.9, ratio=1:1, value=0.5), normalize(0.5:0.5:0.5, 2:2:2)",
               DType::kF32, Layout::kNchw);
  ChainRunner runner(chain);
  const Bytes8 out = run(runner, chain, jpeg, {1, 1, 1});
  float middle;
  std::memcpy(&middle, out.data() + (20 * 40 + 20) * 4, 4);
  EXPECT_EQ(middle, 0.0f);
}

}  // namespace
}  // namespace foreload
