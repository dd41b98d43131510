#include "lab/what_if.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lab/lab_testing.h"

namespace foreload {
namespace {

const Curve* find(const std::vector<Curve>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &Curve::name);
  return found == all.end() ? nullptr : &*found;
}

const Choice* find(const std::vector<Choice>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &Choice::name);
  return found == all.end() ? nullptr : &*found;
}

const CurvePoint* point_at(const Curve& curve, double x) {
  const auto found = std::ranges::find_if(curve.points, [&](const CurvePoint& p) { return std::abs(p.x - x) < 1e-9; });
  return found == curve.points.end() ? nullptr : &*found;
}

// Storage gives 400/s and the accelerator takes 1000/s: 60 % have to be cached.
TEST(WhatIfTest, TheKneeOfTheCacheIsTheClosedForm) {
  const Model model(round_numbers(), round_setup());
  const auto cache = smallest_cache(model, round_setup(), 1000);
  ASSERT_TRUE(cache.has_value());
  EXPECT_NEAR(static_cast<double>(*cache) / 1e9, *sufficient_cache(1e5, 400, 1000), 1e-6);
  const std::vector<Curve> made = curves(model);
  const Curve* curve = find(made, "cache");
  ASSERT_TRUE(curve != nullptr && curve->knee);
  EXPECT_NEAR(curve->knee->x, 0.6, 1e-6);
  EXPECT_NE(curve->knee->says.find("60 %"), std::string::npos) << curve->knee->says;
  EXPECT_EQ(curve->here, 0);
  EXPECT_NEAR(point_at(*curve, 0.3)->stalls.rate, 400 / 0.7, 1e-3);
  EXPECT_NEAR(point_at(*curve, 1.0)->stalls.rate, 1000, 1e-3);
}

TEST(WhatIfTest, ASlowMemoryIsBestBesideStorage) {
  Measured measured = round_numbers();
  measured.memory = sure(70e6);  // 700/s; with storage's 400/s together 1100/s, but alone less than 1000/s
  const Model model(measured, round_setup());
  const auto cache = smallest_cache(model, round_setup(), 1000);
  ASSERT_TRUE(cache.has_value());
  EXPECT_NEAR(static_cast<double>(*cache) / 1e9, 0.6, 1e-6);
}

// 500/s per core: two for the accelerator of 1000/s, if everything is cached; one if storage limits to 400/s.
TEST(WhatIfTest, TheKneeOfCoresIsWhereSomethingElseLimits) {
  JobSetup setup = round_setup();
  const std::vector<Curve> slow = curves(Model(round_numbers(), setup));
  EXPECT_EQ(find(slow, "cores")->knee->x, 1);
  setup.cache = 1'000'000'000;
  const std::vector<Curve> cached = curves(Model(round_numbers(), setup));
  const Curve* curve = find(cached, "cores");
  EXPECT_EQ(curve->knee->x, 2);
  EXPECT_EQ(curve->here, 4);
  EXPECT_DOUBLE_EQ(point_at(*curve, 1)->stalls.prep, 0.5);
  EXPECT_DOUBLE_EQ(point_at(*curve, 2)->stalls.prep, 0);
}

TEST(WhatIfTest, StorageMustReachItsShareOfTheNeed) {
  JobSetup setup = round_setup();
  setup.cache = 250'000'000;
  const Model model(round_numbers(), setup);
  EXPECT_NEAR(*smallest_storage(model, setup, 1000), 0.75 * 100e6, 1);
  const std::vector<Curve> made = curves(model);
  EXPECT_NEAR(find(made, "storage")->knee->x, 75, 1e-6);
  EXPECT_NEAR(*find(made, "storage")->here, 40, 1e-9);
}

// Prep for 2000/s and everything cached: two accelerators of 1000/s.
TEST(WhatIfTest, WhereNothingIsReadStorageHasNoKnee) {
  JobSetup setup = round_setup();
  setup.cache = 1'000'000'000;
  const std::vector<Curve> made = curves(Model(round_numbers(), setup));
  ASSERT_NE(find(made, "storage"), nullptr);
  EXPECT_FALSE(find(made, "storage")->knee);
}

TEST(WhatIfTest, AHostKeepsSoManyAcceleratorsBusy) {
  JobSetup setup = round_setup();
  setup.cache = 1'000'000'000;
  const std::vector<Curve> made = curves(Model(round_numbers(), setup));
  const Curve* curve = find(made, "accelerators");
  EXPECT_EQ(curve->knee->x, 2);
  EXPECT_DOUBLE_EQ(point_at(*curve, 2)->stalls.busy, 1);
  EXPECT_DOUBLE_EQ(point_at(*curve, 4)->stalls.busy, 0.5);
}

// 60 % have to be cached by all together, 25 % are by each.
TEST(WhatIfTest, HostsThatShareEndTheFetchStall) {
  JobSetup setup = round_setup();
  setup.cache = 250'000'000;
  const std::vector<Curve> made = curves(Model(round_numbers(), setup));
  const Curve* curve = find(made, "hosts");
  ASSERT_TRUE(curve != nullptr && curve->knee);
  EXPECT_EQ(curve->knee->x, 3);
  EXPECT_DOUBLE_EQ(point_at(*curve, 4)->stalls.rate, 4000);
}

TEST(WhatIfTest, ChoicesAreOnlyWhatIsKnown) {
  JobSetup setup = round_setup();
  setup.cache = 500'000'000;
  const std::vector<Choice> unknown = choices(Model(round_numbers(), setup));
  EXPECT_EQ(find(unknown, "form"), nullptr);
  EXPECT_EQ(find(unknown, "output"), nullptr);
  const FormCosts forms{.raw = {100e3, 0.002, 100e3}, .record = {100e3, 0.0019, 100e3}, .crop_addressable = {}};
  const std::vector<Choice> known = choices(Model(round_numbers(), setup, forms));
  ASSERT_NE(find(known, "form"), nullptr);
  EXPECT_EQ(find(known, "form")->options.size(), 2u);
  EXPECT_TRUE(find(known, "form")->options[0].here);
}

TEST(WhatIfTest, EvictingNothingIsTheBestOfTheCaches) {
  JobSetup setup = round_setup();
  setup.cache = 500'000'000;
  const std::vector<Choice> made = choices(Model(round_numbers(), setup));
  const std::vector<Option>& options = find(made, "cache")->options;
  ASSERT_EQ(options.size(), 4u);
  EXPECT_DOUBLE_EQ(options[0].stalls.rate, 400);      // nobody
  EXPECT_NEAR(options[1].stalls.rate, 472.49, 0.01);  // lru
  EXPECT_DOUBLE_EQ(options[2].stalls.rate, 800);      // never evicted
  EXPECT_TRUE(options[2].here);
  EXPECT_DOUBLE_EQ(options[3].stalls.rate, 2000);  // two hosts: both their accelerators
}

TEST(WhatIfTest, WhatIsNotKnownHasNoCurves) {
  Measured measured = round_numbers();
  measured.prep.clear();
  EXPECT_TRUE(curves(Model(measured, round_setup())).empty());
  EXPECT_TRUE(choices(Model(measured, round_setup())).empty());
}

}  // namespace
}  // namespace foreload
