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
  EXPECT_NEAR(curve->knee->x, 0.6, 0.003);  // half a percent of stall is none
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
  EXPECT_NEAR(*smallest_storage(model, setup, 1000), 0.75 * 100e6, 100);
  const std::vector<Curve> made = curves(model);
  EXPECT_NEAR(find(made, "storage")->knee->x, 75, 1e-3);
  EXPECT_NEAR(*find(made, "storage")->here, 40, 1e-9);
}

// What is cached is not in the page cache as well: both together are the machine's memory.
TEST(WhatIfTest, TheCacheTakesItsMemoryFromThePageCache) {
  JobSetup setup = round_setup();
  setup.page_cache = 600'000'000;
  setup.cache = 100'000'000;
  EXPECT_EQ(with_cache(setup, 300'000'000).page_cache, 400'000'000u);
  EXPECT_EQ(with_cache(setup, 900'000'000).page_cache, 0u);
  setup.accelerators = setup.caches = 2;  // each learner its own
  EXPECT_EQ(with_cache(setup, 300'000'000).page_cache, 200'000'000u);
  setup.page_cache = 0;  // reads go past it
  EXPECT_EQ(with_cache(setup, 0).page_cache, 0u);
}

// Hits are hits: they are not put through the formula of a policy again.
TEST(WhatIfTest, WhatWasSeenToComeFromMemoryCountsWhoeverKeptIt) {
  for (const CachePolicy policy : {CachePolicy::kNeverEvict, CachePolicy::kLru, CachePolicy::kPageCache}) {
    JobSetup setup = round_setup();
    setup.policy = policy;
    setup = with_hits(setup, 0.5, 1'000'000'000);
    EXPECT_NEAR(Model(round_numbers(), setup).predict(setup)->stalls.rate, 800, 1e-3);
    setup = with_hits(setup, 0, 1'000'000'000);
    EXPECT_NEAR(Model(round_numbers(), setup).predict(setup)->stalls.rate, 400, 1e-3);
  }
}

// Prep limits, and reading takes a little of its cores: that is no fetch stall.
TEST(WhatIfTest, WherePrepLimitsTheCacheHasItsKneeAtNothing) {
  Measured measured = round_numbers();
  measured.storage = {{32, sure(1e9)}};
  measured.stages = {{"read", sure(0.000005)}, {"decode", sure(0.002)}};
  JobSetup setup = round_setup();
  setup.cores = setup.threads = 1;
  setup.cache = 1'000'000'000;
  std::vector<Curve> made = curves(Model(measured, setup));
  ASSERT_TRUE(find(made, "cache")->knee.has_value());
  EXPECT_EQ(find(made, "cache")->knee->x, 0);
  EXPECT_NE(find(made, "cache")->knee->says.find("brings nothing"), std::string::npos);
  measured.stages[0].seconds = sure(0.0004);  // a fifth of the core
  made = curves(Model(measured, setup));
  EXPECT_EQ(find(made, "cache")->knee->x, 0);
  EXPECT_NE(find(made, "cache")->knee->says.find("CPU time of reading"), std::string::npos);
}

// 1000/s are 100 MB/s of whole samples; halves are enough as long as storage is slow.
TEST(WhatIfTest, SufficientStorageKnowsThatPartsPayOnlyWhereItIsSlow) {
  Measured measured = round_numbers();
  measured.read_share = {{20e6, sure(0.5)}, {40e6, sure(1)}};
  const Model model(measured, round_setup());
  EXPECT_NEAR(*smallest_storage(model, round_setup(), 1000), 100e6, 100);
  EXPECT_NEAR(*smallest_storage(model, round_setup(), 200), 10e6, 100);
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
  Measured measured = round_numbers();
  JobSetup setup = round_setup();
  setup.cache = 250'000'000;
  const std::vector<Curve> unknown = curves(Model(measured, setup));
  EXPECT_EQ(find(unknown, "hosts"), nullptr) << "of a network that nobody knows";
  measured.network = sure(10e9);
  const std::vector<Curve> made = curves(Model(measured, setup));
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
  const FormCosts forms{.raw = {0.002, 100e3}, .record = {0.0019, 100e3}, .crop_addressable = {}};
  const std::vector<Choice> known = choices(Model(round_numbers(), setup, forms));
  ASSERT_NE(find(known, "form"), nullptr);
  EXPECT_EQ(find(known, "form")->options.size(), 2u);
  EXPECT_TRUE(find(known, "form")->options[0].here);
}

TEST(WhatIfTest, EvictingNothingIsTheBestOfTheCaches) {
  Measured measured = round_numbers();
  JobSetup setup = round_setup();
  setup.cache = 500'000'000;
  const std::vector<Choice> unknown = choices(Model(measured, setup));
  EXPECT_EQ(find(unknown, "cache")->options.size(), 3u) << "no hosts without a network";
  measured.network = sure(10e9);
  const std::vector<Choice> made = choices(Model(measured, setup));
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
