#include <gtest/gtest.h>

#include "foreload/transform.h"

namespace foreload {
namespace {

std::vector<Transform> parsed(const std::string& text) {
  auto chain = parse_chain(text);
  EXPECT_TRUE(chain) << chain.error().message;
  return chain ? *chain : std::vector<Transform>{};
}

std::string refusal(const std::string& text) {
  const auto chain = parse_chain(text);
  if (chain) return "accepted";
  EXPECT_EQ(chain.error().code, Code::kInvalid);
  return chain.error().message;
}

TEST(ChainTextTest, TextAndBuildersMeanTheSame) {
  EXPECT_EQ(parsed("random_resized_crop(224), random_flip, normalize"),
            (std::vector<Transform>{random_resized_crop(224), random_flip(), normalize(kImageNet)}));
  EXPECT_EQ(parsed(" random_resized_crop ( size = 96 : 128 , scale=0.5:1,ratio=1:2),random_flip(p=0.25) "),
            (std::vector<Transform>{random_resized_crop(96, 128, {0.5, 1}, {1, 2}), random_flip(0.25)}));
  EXPECT_EQ(parsed("resize(256), center_crop(224:200)"), (std::vector<Transform>{resize(256), center_crop(224, 200)}));
  EXPECT_EQ(parsed("color_jitter(0.4, 0.3, hue=0.1), random_erasing(0.2)"),
            (std::vector<Transform>{color_jitter(0.4, 0.3, 0, 0.1), random_erasing(0.2)}));
  EXPECT_EQ(parsed("array(f32, shape=3:4)"), (std::vector<Transform>{array(DType::kF32, {3, 4})}));
  EXPECT_EQ(parsed("array(u8, 5:, 1)"), (std::vector<Transform>{array(DType::kU8, {5}, true)}));
}

TEST(ChainTextTest, WhatIsWrittenIsReadBack) {
  const std::vector<std::vector<Transform>> chains = {
      {random_resized_crop(224), random_flip(), normalize(kImageNet)},
      {resize(256, 300), center_crop(1), random_flip(0.1), normalize({{0.1, 1.0 / 3.0, 0}, {1, 2e-5, 3}})},
      {random_resized_crop(5, 6, {0.1, 0.7}, {1.0 / 3.0, 1.5})},
      {random_crop(32, 4), random_vertical_flip(), pad(2), pad(3, 9), random_crop(30, 20, 1)},
      {random_rotation(10), random_affine(5), random_affine(5, {{0.1, 0.2}, {0.5, 2}, {-3, 4}, true, 7})},
      {color_jitter(), color_jitter(0.4, 0.3, 0.2, 0.1), grayscale(), random_grayscale(), random_grayscale(0.2)},
      {gaussian_blur(3), gaussian_blur(5, {1, 2}), trivial_augment_wide(), rand_augment(), rand_augment(3, 4)},
      {random_erasing(), random_erasing(1, {0.1, 0.2}, {0.5, 2}, 0.5)},
      {array(DType::kI64, {})},
      {array(DType::kF16, {7}, true)},
  };
  for (const auto& chain : chains) EXPECT_EQ(parsed(chain_text(chain)), chain) << chain_text(chain);
  EXPECT_EQ(chain_text(chains[0]), "random_resized_crop(224), random_flip, normalize");
}

TEST(ChainTextTest, UnknownNamesListTheKnownOnes) {
  EXPECT_NE(refusal("random_resized_crob(224)").find("random_resized_crop, resize, center_crop"), std::string::npos);
  const std::string message = refusal("random_flip(probability=1)");
  EXPECT_NE(message.find("'probability'"), std::string::npos) << message;
  EXPECT_NE(message.find("it accepts: p"), std::string::npos) << message;
}

TEST(ChainTextTest, TransformsOfBenchmarksAreNotForUsers) {
  EXPECT_FALSE(parse_chain("sleeping(1000000)").ok());
}

TEST(ChainTextTest, ValuesOutsideTheirRangeAreRefused) {
  for (const char* text : {"resize",
                           "resize()",
                           "resize(0)",
                           "resize(1.5)",
                           "resize(40000)",
                           "resize(1:2:3)",
                           "resize(big)",
                           "resize(-5)",
                           "random_flip(1.5)",
                           "random_flip(p=x)",
                           "random_resized_crop(8, scale=1:0.5)",
                           "random_resized_crop(8, scale=0:1)",
                           "random_resized_crop(8, ratio=1)",
                           "normalize(std=0:1:1)",
                           "normalize(mean=1:1)",
                           "array(f31, 3:4)",
                           "array(f32)",
                           "array(f32, 0:4)",
                           "array(f32, 1000000:1000000:1000000)",
                           "array(f32, 3, headerless=2)",
                           "resize(8, size=8)"}) {
    EXPECT_NE(refusal(text), "accepted") << text;
  }
}

TEST(ChainTextTest, AugmentationsOutsideTheirRangeAreRefused) {
  for (const char* text : {"random_vertical_flip(2)",
                           "color_jitter(-1)",
                           "color_jitter(1000)",
                           "color_jitter(0.1:0.2:0.3)",
                           "color_jitter(2:1)",
                           "color_jitter(hue=0.6)",
                           "color_jitter(hue=-0.6:0)",
                           "color_jitter(much)",
                           "grayscale(1)",
                           "random_grayscale(-0.1)",
                           "gaussian_blur",
                           "gaussian_blur(4)",
                           "gaussian_blur(0)",
                           "gaussian_blur(-3)",
                           "gaussian_blur(2.5)",
                           "gaussian_blur(1001)",
                           "gaussian_blur(3:4)",
                           "gaussian_blur(3, sigma=0)",
                           "gaussian_blur(3, sigma=2:1)",
                           "gaussian_blur(3, sigma=1e9)",
                           "random_rotation",
                           "random_rotation(-5)",
                           "random_rotation(1e9)",
                           "random_rotation(5, interpolation=cubic)",
                           "random_rotation(5, fill=256)",
                           "random_rotation(5, fill=1:2)",
                           "random_affine",
                           "random_affine(5, translate=2:0)",
                           "random_affine(5, translate=0.1)",
                           "random_affine(5, scale=0:1)",
                           "random_affine(5, scale=2:1)",
                           "random_affine(5, shear=90)",
                           "random_affine(5, shear=1:2:3)",
                           "random_affine(5, shear=1:2:4:3)",
                           "trivial_augment_wide(1)",
                           "trivial_augment_wide(31.5)",
                           "rand_augment(0)",
                           "rand_augment(1.5)",
                           "rand_augment(2, 31)",
                           "rand_augment(2, 9, 5)",
                           "pad",
                           "pad(-1)",
                           "pad(1.5)",
                           "pad(1:2:3)",
                           "pad(99999)",
                           "pad(1, padding_mode=wrap)",
                           "random_crop",
                           "random_crop(0)",
                           "random_crop(8, padding=x)",
                           "random_crop(8, pad_if_needed=2)",
                           "random_erasing(1.5)",
                           "random_erasing(scale=0.5:2)",
                           "random_erasing(scale=0.5:0.1)",
                           "random_erasing(ratio=0:1)",
                           "random_erasing(value=random)",
                           "random_erasing(value=1:2)"}) {
    EXPECT_NE(refusal(text), "accepted") << text;
  }
}

TEST(ChainTextTest, BrokenTextNamesThePlace) {
  for (const char* text : {"", ",", "resize(", "resize(8", "resize(8))", "resize(8) resize(9)", "resize(8,)",
                           "resize(=8)", "resize(8),", "8", "resize(8, 9)"}) {
    EXPECT_NE(refusal(text), "accepted") << text;
  }
  EXPECT_NE(refusal("resize(8) flip").find("at 'flip'"), std::string::npos);
}

}  // namespace
}  // namespace foreload
