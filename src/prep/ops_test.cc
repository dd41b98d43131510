// What ops draw: ranges, distributions and golden vectors, without any pixels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "prep/op.h"

namespace foreload {
namespace {

// The plan of one op for one position.
Plan planned(const std::string& text, Dimensions size, Position position, std::uint64_t seed = 7) {
  Plan plan;
  plan.begin(size);
  const auto chain = parse_chain(text);
  if (!chain) {
    ADD_FAILURE() << chain.error().message;
    return plan;
  }
  const auto op = make_op((*chain)[0]);
  KeyedRandom random(seed, 0, position, 0);
  const Status status = (*op)->place(plan, random);
  EXPECT_TRUE(status) << status.error().message;
  plan.settle();
  return plan;
}

std::vector<Stroke> strokes(const std::string& text, Position position, Dimensions size = {100, 80}) {
  const Plan plan = planned(text, size, position);
  return plan.stages()[0].strokes;
}

// Mean and extent of a uniform distribution, from n draws.
struct Spread {
  std::vector<double> values;

  void expect_uniform(double lowest, double highest) {
    const auto n = static_cast<double>(values.size());
    double sum = 0;
    for (const double value : values) sum += value;
    const double width = highest - lowest;
    EXPECT_NEAR(sum / n, (lowest + highest) / 2, 5 * width / std::sqrt(12 * n));
    EXPECT_GE(*std::min_element(values.begin(), values.end()), lowest);
    EXPECT_LE(*std::max_element(values.begin(), values.end()), highest);
    EXPECT_LT(*std::min_element(values.begin(), values.end()), lowest + 0.01 * width);
    EXPECT_GT(*std::max_element(values.begin(), values.end()), highest - 0.01 * width);
  }
};

constexpr Position kDraws = 4000;

TEST(ColorJitterTest, FactorsAreUniformAndTheOrderIsRandom) {
  std::map<Enhance::Kind, Spread> factors;
  Spread hues;
  std::map<std::vector<std::size_t>, int> orders;
  for (Position p = 0; p < kDraws; ++p) {
    std::vector<std::size_t> order;
    for (const Stroke& stroke : strokes("color_jitter(0.4, 0.5:2.5, 1.5, 0.1)", p)) {
      if (const auto* enhance = std::get_if<Enhance>(&stroke)) {
        factors[enhance->kind].values.push_back(enhance->factor);
        order.push_back(static_cast<std::size_t>(enhance->kind));
      } else {
        hues.values.push_back(std::get<ShiftHue>(stroke).turn);
        order.push_back(9);
      }
    }
    ++orders[order];
  }
  factors[Enhance::Kind::kBrightness].expect_uniform(0.6, 1.4);
  factors[Enhance::Kind::kContrast].expect_uniform(0.5, 2.5);
  factors[Enhance::Kind::kSaturation].expect_uniform(0, 2.5);
  hues.expect_uniform(-0.1, 0.1);
  EXPECT_EQ(orders.size(), 24u);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, kDraws / 24.0, 5 * std::sqrt(kDraws / 24.0));
}

TEST(ColorJitterTest, WhatHasNoRangeIsLeftOut) {
  EXPECT_TRUE(strokes("color_jitter", 1).empty());
  EXPECT_TRUE(strokes("color_jitter(0, 1:1, 0, 0)", 1).empty());
  const auto only = strokes("color_jitter(hue=0.2)", 1);
  ASSERT_EQ(only.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<ShiftHue>(only[0]));
}

TEST(RandomGrayscaleTest, HappensWithItsProbability) {
  int gray = 0;
  for (Position p = 0; p < kDraws; ++p) gray += !strokes("random_grayscale(0.3)", p).empty();
  EXPECT_NEAR(gray, 0.3 * kDraws, 5 * std::sqrt(0.21 * kDraws));
  EXPECT_TRUE(strokes("random_grayscale(0)", 1).empty());
  EXPECT_EQ(strokes("grayscale", 1).size(), 1u);
}

TEST(GaussianBlurTest, SigmaIsUniform) {
  Spread sigmas;
  for (Position p = 0; p < kDraws; ++p)
    sigmas.values.push_back(std::get<Blur>(strokes("gaussian_blur(5)", p)[0]).sigma);
  sigmas.expect_uniform(0.1, 2.0);
}

TEST(RandomRotationTest, AngleIsUniform) {
  Spread angles;
  for (Position p = 0; p < kDraws; ++p) {
    angles.values.push_back(std::get<Rotate>(strokes("random_rotation(-10:40)", p)[0]).degrees);
  }
  angles.expect_uniform(-10, 40);
  EXPECT_TRUE(strokes("random_rotation(0)", 1).empty());
}

TEST(RandomAffineTest, ParametersAreUniform) {
  Spread degrees, x, y, scale, shear_x, shear_y;
  for (Position p = 0; p < kDraws; ++p) {
    const auto all = strokes("random_affine(30, translate=0.5:0.25, scale=0.5:1.5, shear=-5:5:1:2)", p, {1000, 800});
    const auto& affine = std::get<Affine>(all[0]);
    degrees.values.push_back(affine.degrees);
    x.values.push_back(static_cast<double>(affine.translate[0]));
    y.values.push_back(static_cast<double>(affine.translate[1]));
    scale.values.push_back(affine.scale);
    shear_x.values.push_back(affine.shear[0]);
    shear_y.values.push_back(affine.shear[1]);
  }
  degrees.expect_uniform(-30, 30);
  x.expect_uniform(-500, 500);
  y.expect_uniform(-200, 200);
  scale.expect_uniform(0.5, 1.5);
  shear_x.expect_uniform(-5, 5);
  shear_y.expect_uniform(1, 2);
}

TEST(RandomCropTest, EveryPlaceIsEquallyLikely) {
  std::map<std::pair<std::int64_t, std::int64_t>, int> places;
  for (Position p = 0; p < 81 * 60; ++p) {
    const Plan plan = planned("random_crop(32, padding=4)", {32, 32}, p);
    const View& view = plan.stages()[0].geometry.last_view();
    ++places[{view.x.origin, view.y.origin}];
  }
  EXPECT_EQ(places.size(), 81u);
  EXPECT_EQ(places.begin()->first, (std::pair<std::int64_t, std::int64_t>{-4, -4}));
  for (const auto& [place, count] : places) EXPECT_NEAR(count, 60, 5 * std::sqrt(60.0));
}

TEST(RandomCropTest, PadsOnlyWhatIsMissing) {
  for (Position p = 0; p < 200; ++p) {
    const Plan plan = planned("random_crop(32, pad_if_needed=1)", {20, 50}, p);
    const View& view = plan.stages()[0].geometry.last_view();
    EXPECT_EQ(view.x.visible({0, 32}).size(), 20);
    EXPECT_EQ(view.y.visible({0, 32}).size(), 32);
  }
}

TEST(RandomErasingTest, AreaIsUniformRatioIsSymmetricAndPlacesAreInside) {
  Spread areas;
  double log_ratio = 0;
  for (Position p = 0; p < kDraws; ++p) {
    Plan plan = planned("random_erasing(1, scale=0.05:0.2, ratio=0.5:2)", {2000, 2000}, p);
    ASSERT_EQ(plan.erasures().size(), 1u);
    const Box box = plan.erasures()[0].box;
    ASSERT_LE(box.x + box.width, 2000u);
    ASSERT_LE(box.y + box.height, 2000u);
    areas.values.push_back(static_cast<double>(box.width) * box.height / 4e6);
    log_ratio += std::log2(static_cast<double>(box.height) / box.width);
  }
  for (double& area : areas.values) area = std::clamp(area, 0.05, 0.2);  // whole pixels
  areas.expect_uniform(0.05, 0.2);
  EXPECT_NEAR(log_ratio / kDraws, 0, 0.05);
}

TEST(RandomErasingTest, HappensWithItsProbabilityAndGivesUpInTinyPictures) {
  int erased = 0;
  for (Position p = 0; p < kDraws; ++p) {
    erased += !planned("random_erasing", {100, 100}, p).erasures().empty();
    EXPECT_TRUE(planned("random_erasing(1, scale=1:1, ratio=1:1)", {8, 8}, p).erasures().empty());
  }
  EXPECT_NEAR(erased, kDraws / 2.0, 5 * std::sqrt(kDraws / 4.0));
}

std::string kind_of(const std::vector<Stroke>& all) {
  if (all.empty()) return "none";
  const Stroke& stroke = all[0];
  if (const auto* enhance = std::get_if<Enhance>(&stroke))
    return "enhance" + std::to_string(static_cast<int>(enhance->kind));
  if (const auto* shear = std::get_if<Shear>(&stroke)) return shear->x != 0 ? "shear x" : "shear y";
  if (const auto* affine = std::get_if<Affine>(&stroke)) return affine->translate[0] != 0 ? "move x" : "move y";
  return std::to_string(stroke.index());
}

TEST(TrivialAugmentWideTest, AllAdjustmentsAreEquallyLikely) {
  std::map<std::string, int> kinds;
  Spread degrees;
  for (Position p = 0; p < 14'000; ++p) {
    const auto all = strokes("trivial_augment_wide", p);
    ++kinds[kind_of(all)];
    if (all.empty() || !std::holds_alternative<Rotate>(all[0])) continue;
    degrees.values.push_back(std::get<Rotate>(all[0]).degrees);
    const double bin = std::abs(degrees.values.back()) / 4.5;
    EXPECT_NEAR(bin, std::round(bin), 1e-9);
  }
  EXPECT_EQ(kinds.size(), 14u);
  for (const auto& [kind, count] : kinds) {
    // Small magnitudes of some do nothing; those count as none.
    if (kind == "none") continue;
    EXPECT_NEAR(count, 1000, 200) << kind;
  }
  degrees.expect_uniform(-135, 135);
}

TEST(RandAugmentTest, DrawsTheGivenNumberWithTheGivenMagnitude) {
  std::set<double> factors;
  for (Position p = 0; p < 2000; ++p) {
    const auto all = strokes("rand_augment(3, magnitude=10)", p);
    EXPECT_LE(all.size(), 3u);
    for (const Stroke& stroke : all) {
      if (const auto* enhance = std::get_if<Enhance>(&stroke)) factors.insert(enhance->factor);
      if (const auto* rotate = std::get_if<Rotate>(&stroke)) {
        EXPECT_EQ(std::abs(rotate->degrees), 10.0);
      }
      if (const auto* posterize = std::get_if<Posterize>(&stroke)) {
        EXPECT_EQ(posterize->bits, 7u);
      }
    }
  }
  EXPECT_EQ(factors, (std::set<double>{0.7, 1.3}));
}

// A drawn number, exactly.
std::int64_t q32(double x) {
  return static_cast<std::int64_t>(x * 4294967296.0);
}

// The same on every machine and in every release: prepared samples depend on it.
TEST(OpsTest, GoldenVectors) {
  std::vector<std::int64_t> drawn;
  for (const Stroke& stroke : strokes("color_jitter(0.4, 0.4, 0.4, 0.1)", 1)) {
    const auto* enhance = std::get_if<Enhance>(&stroke);
    drawn.push_back(enhance ? static_cast<std::int64_t>(enhance->kind) : 9);
    drawn.push_back(q32(enhance ? enhance->factor : std::get<ShiftHue>(stroke).turn));
  }
  EXPECT_EQ(drawn, (std::vector<std::int64_t>{9, -114148829, 0, 3284394004, 1, 4083758808, 2, 3467352849}));
  EXPECT_EQ(q32(std::get<Blur>(strokes("gaussian_blur(5)", 2)[0]).sigma), 2220373347);
  EXPECT_EQ(q32(std::get<Rotate>(strokes("random_rotation(30)", 3)[0]).degrees), -4172459820);
  const auto warped = strokes("random_affine(30, translate=0.5:0.5, scale=0.5:1.5, shear=9)", 4);
  const auto& affine = std::get<Affine>(warped[0]);
  EXPECT_EQ((std::vector<std::int64_t>{q32(affine.degrees), affine.translate[0], affine.translate[1], q32(affine.scale),
                                       q32(affine.shear[0])}),
            (std::vector<std::int64_t>{-5303007000, -4, 34, 5442567441, -24139028754}));
  EXPECT_EQ(planned("random_erasing(1)", {224, 224}, 5).erasures()[0].box, (Box{39, 74, 86, 64}));
  std::string kinds;
  for (Position p = 0; p < 12; ++p) kinds += kind_of(strokes("trivial_augment_wide", p)) + ",";
  EXPECT_EQ(kinds, "move x,enhance1,enhance3,enhance0,enhance0,move y,enhance2,enhance2,6,enhance2,enhance1,5,");
}

}  // namespace
}  // namespace foreload
