#include "lab/model.h"

#include <gtest/gtest.h>

#include "lab/lab_testing.h"

namespace foreload {
namespace {

Stalls predicted(const Measured& measured, const JobSetup& setup, Epochs epochs = Epochs::kLater) {
  const auto made = Model(measured, setup).predict(setup, epochs);
  EXPECT_TRUE(made.has_value());
  return made ? made->stalls : Stalls{};
}

TEST(ModelTest, NothingCachedIsAsFastAsStorage) {
  const Stalls found = predicted(round_numbers(), round_setup());
  EXPECT_DOUBLE_EQ(found.rate, 400);
  EXPECT_EQ(found.bound, Bound::kFetch);
  EXPECT_DOUBLE_EQ(found.busy, 0.4);
  EXPECT_DOUBLE_EQ(found.fetch, 0.6);
}

TEST(ModelTest, TheFirstEpochReadsEverything) {
  JobSetup setup = round_setup();
  setup.cache = 500'000'000;
  EXPECT_DOUBLE_EQ(predicted(round_numbers(), setup, Epochs::kFirst).rate, 400);
  EXPECT_DOUBLE_EQ(predicted(round_numbers(), setup).rate, 800);
}

TEST(ModelTest, PrepLimitsWhatFewCoresPrepare) {
  JobSetup setup = round_setup();
  setup.cache = 1'000'000'000;
  setup.cores = setup.threads = 1;
  const Stalls found = predicted(round_numbers(), setup);
  EXPECT_DOUBLE_EQ(found.rate, 500);
  EXPECT_EQ(found.bound, Bound::kPrep);
  EXPECT_DOUBLE_EQ(found.prep, 0.5);
}

// Half of the dataset: never-evict misses 0.5 → 800/s, LRU 1 − 0.153426 → 472.5/s.
TEST(ModelTest, LruMissesMore) {
  JobSetup setup = round_setup();
  setup.cache = 500'000'000;
  setup.policy = CachePolicy::kLru;
  EXPECT_NEAR(predicted(round_numbers(), setup).rate, 400 / (1 - 0.153426), 0.01);
}

TEST(ModelTest, ThePageCacheIsBetweenAndItsEndsAreTheEndsOfThePrediction) {
  Measured measured = round_numbers();
  measured.page_cache = sure(5e9);
  JobSetup setup = round_setup();
  setup.page_cache = 500'000'000;
  const auto made = Model(measured, setup).predict(setup);
  ASSERT_TRUE(made.has_value());
  EXPECT_NEAR(made->low, 400 / (1 - 0.153426), 0.01);
  EXPECT_NEAR(made->high, 800, 0.01);
  EXPECT_NEAR(made->stalls.rate, 400 / (1 - (0.5 + 0.153426) / 2), 0.01);
}

// Without a figure for it the page cache is not counted on.
TEST(ModelTest, AnUnmeasuredPageCacheIsStorage) {
  JobSetup setup = round_setup();
  setup.page_cache = 2'000'000'000;
  EXPECT_DOUBLE_EQ(predicted(round_numbers(), setup).rate, 400);
}

// 20 % in memory, 50 % on a disk of 100 MB/s = 1000/s, the rest at 400/s: 400/0.3 = 1333 > disk's 2000 > accelerator.
TEST(ModelTest, TheDiskTierTakesWhatMemoryLeaves) {
  Measured measured = round_numbers();
  measured.disk = sure(100e6);
  measured.accelerator = sure(5000);
  measured.prep = {{4, sure(5000)}};
  JobSetup setup = round_setup();
  setup.cache = 200'000'000;
  setup.disk = 500'000'000;
  EXPECT_NEAR(predicted(measured, setup).rate, 400 / 0.3, 1e-6);
  setup.disk = 1'000'000'000;  // 80 % from the disk
  EXPECT_NEAR(predicted(measured, setup).rate, 1000 / 0.8, 1e-6);
  setup.disk_before = 1'000'000'000;
  EXPECT_NEAR(predicted(measured, setup, Epochs::kFirst).rate, 1000, 1e-6);
}

TEST(ModelTest, AcceleratorsOfAHostShareStorageAndCores) {
  JobSetup setup = round_setup();
  setup.cache = 900'000'000;  // storage for 4000/s, prep for 2000/s
  EXPECT_EQ(predicted(round_numbers(), setup).bound, Bound::kAccelerator);
  setup.accelerators = 4;
  const Stalls found = predicted(round_numbers(), setup);
  EXPECT_DOUBLE_EQ(found.rate, 2000);
  EXPECT_EQ(found.bound, Bound::kPrep);
  EXPECT_DOUBLE_EQ(found.busy, 0.5);
}

// Each host keeps 30 %. Alone it reads 70 % from storage; two that share read 40 %, and so on.
TEST(ModelTest, HostsThatShareCachesMissLess) {
  Measured measured = round_numbers();
  measured.network = sure(10e9);
  JobSetup setup = round_setup();
  setup.cache = 300'000'000;
  setup.hosts = 2;
  EXPECT_NEAR(predicted(measured, setup).rate, 2 * 400 / 0.7, 1e-6);
  setup.partitioned = true;
  EXPECT_NEAR(predicted(measured, setup).rate, 2 * 400 / 0.4, 1e-6);
  setup.hosts = 4;
  EXPECT_DOUBLE_EQ(predicted(measured, setup).rate, 4000);  // all cached: the accelerators' limit
}

TEST(ModelTest, WhatMovesBetweenHostsGoesThroughTheNetwork) {
  Measured measured = round_numbers();
  measured.network = sure(1e6);  // 10 samples per second
  JobSetup setup = round_setup();
  setup.cache = 500'000'000;
  setup.hosts = 2;
  setup.partitioned = true;
  EXPECT_NEAR(predicted(measured, setup).rate, 2 * 10 / balanced_traffic(2, 64), 1e-6);
}

// Nobody knows how fast the network is: nothing is said of what needs it.
TEST(ModelTest, WithoutTheNetworkNothingIsPredictedOfHostsThatShare) {
  JobSetup setup = round_setup();
  setup.cache = 300'000'000;
  setup.hosts = 2;
  EXPECT_TRUE(Model(round_numbers(), setup).predict(setup).has_value());
  setup.partitioned = true;
  EXPECT_FALSE(Model(round_numbers(), setup).predict(setup).has_value());
  EXPECT_TRUE(Model(round_numbers(), setup).predict(setup, Epochs::kFirst).has_value());  // all of it from storage
}

// Prep was seen to take 2000/s from memory, so that much it gives; an accelerator of 5000/s and more cores need more.
TEST(ModelTest, AnUnmeasuredMemoryTierGivesWhatPrepTookAndItIsSaid) {
  Measured measured = round_numbers();
  measured.accelerator = sure(5000);
  JobSetup setup = round_setup();
  setup.cache = 1'000'000'000;
  setup.cores = setup.threads = 8;
  EXPECT_DOUBLE_EQ(Model(measured, setup).predict(setup)->stalls.rate, 4000);
  EXPECT_TRUE(Model(measured, setup).predict(setup)->assumes.empty());
  measured.memory = {};
  const auto made = Model(measured, setup).predict(setup);
  ASSERT_TRUE(made.has_value());
  EXPECT_DOUBLE_EQ(made->stalls.rate, 2000);
  EXPECT_NE(made->assumes.find("memory tier"), std::string::npos) << made->assumes;
  EXPECT_TRUE(Model(measured, setup).predict(setup, Epochs::kFirst)->assumes.empty());
}

// The median of 64 at once is the larger, by luck.
TEST(ModelTest, TheBestDepthIsTheOneThatSurelyGivesMost) {
  Measured measured = round_numbers();
  measured.storage = {{32, {40e6, 38e6, 42e6, 9}}, {64, {44e6, 20e6, 70e6, 9}}};
  EXPECT_EQ(Model(measured, round_setup()).storage().value, 40e6);
}

// One core reads at 0.5 ms a sample and prepares at 2 ms.
TEST(ModelTest, ReadingTakesCoresFromPrepWhereAllAreUsed) {
  Measured measured = round_numbers();
  measured.stages = {{"read", sure(0.0005)}, {"decode", sure(0.002)}};
  measured.storage = {{32, sure(1e9)}};
  JobSetup setup = round_setup();
  setup.cores = setup.threads = 1;
  EXPECT_DOUBLE_EQ(predicted(measured, setup).rate, 400);
  setup.cache = 1'000'000'000;
  EXPECT_DOUBLE_EQ(predicted(measured, setup).rate, 500);
  setup.cache = 0;
  setup.cores = 2;  // the other one reads
  EXPECT_DOUBLE_EQ(predicted(measured, setup).rate, 500);
}

TEST(ModelTest, ThreadsThatShareACoreAreOne) {
  JobSetup setup = round_setup();
  setup.cache = 1'000'000'000;
  setup.cores = 1;
  setup.threads = 4;
  EXPECT_DOUBLE_EQ(predicted(round_numbers(), setup).rate, 500);
}

// Of a miss, half of the bytes are read; the first epoch reads whole what it will keep.
TEST(ModelTest, CropsAreReadInPart) {
  Measured measured = round_numbers();
  measured.read_share = {{40e6, sure(0.5)}};
  JobSetup setup = round_setup();
  setup.cache = 200'000'000;
  EXPECT_NEAR(predicted(measured, setup).rate, 1000, 1e-6);  // 400/0.5/0.8
  EXPECT_NEAR(predicted(measured, setup, Epochs::kFirst).rate, 400 / (0.2 + 0.8 * 0.5), 1e-6);
}

// Half of a sample is enough up to 40 MB/s; from storage of 160 MB/s, whole ones come as quickly as two requests.
TEST(ModelTest, WhetherAPartPaysDependsOnTheRate) {
  const std::vector<ReadAt> known{{40e6, sure(0.5)}, {160e6, sure(1)}};
  EXPECT_DOUBLE_EQ(read_share_at({}, 1e6).value, 1);
  EXPECT_DOUBLE_EQ(read_share_at(known, 1e6).value, 0.5);
  EXPECT_NEAR(read_share_at(known, 80e6).value, 0.75, 1e-9);
  EXPECT_DOUBLE_EQ(read_share_at(known, 1e9).value, 1);
  Measured measured = round_numbers();
  measured.read_share = known;
  measured.accelerator = sure(5000);
  measured.prep = {{1, sure(1250)}, {4, sure(5000)}};
  JobSetup setup = round_setup();
  EXPECT_NEAR(predicted(measured, setup).rate, 800, 1e-6);
  setup.storage = 160e6;
  EXPECT_NEAR(predicted(measured, setup).rate, 1600, 1e-6);
}

// Records read 60 % and take half of the CPU: 400/0.6 = 667/s from storage, twice the prep.
TEST(ModelTest, OtherFormsCostWhatWasCompared) {
  const FormCosts forms{.raw = {0.002, 100e3}, .record = {}, .crop_addressable = {0.001, 100e3, {{40e6, sure(0.6)}}}};
  const JobSetup here = round_setup();
  const Model model(round_numbers(), here, forms);
  JobSetup there = here;
  there.form = Form::kCropAddressable;
  EXPECT_NEAR(model.predict(there)->stalls.rate, 400 / 0.6, 1e-6);
  EXPECT_NEAR(model.predict(there)->prep, 4000, 1e-6);
  there.form = Form::kRecord;
  EXPECT_FALSE(model.predict(there).has_value());
}

// Normalising takes 0.5 ms of 2 ms.
TEST(ModelTest, BytesNeedNoNormalising) {
  Measured measured = round_numbers();
  measured.stages = {{"read", sure(0.001)}, {"decode", sure(0.0015)}, {"normalise", sure(0.0005)}};
  JobSetup here = round_setup();
  here.cache = 1'000'000'000;
  const Model model(measured, here);
  JobSetup there = here;
  there.dtype = DType::kU8;
  EXPECT_NEAR(model.predict(there)->prep, 2000 / 0.75, 1e-6);
}

TEST(ModelTest, LowAndHighFollowFromTheFigures) {
  Measured measured = round_numbers();
  measured.storage = {{32, {40e6, 36e6, 48e6, 5}}};
  const JobSetup setup = round_setup();
  const auto made = Model(measured, setup).predict(setup);
  EXPECT_DOUBLE_EQ(made->low, 360);
  EXPECT_DOUBLE_EQ(made->high, 480);
}

TEST(ModelTest, NothingIsPredictedFromNothing) {
  Measured no_storage = round_numbers();
  no_storage.storage.clear();
  JobSetup setup = round_setup();
  EXPECT_FALSE(Model(no_storage, setup).predict(setup).has_value());
  setup.cache = 1'000'000'000;  // then it is not needed, but in the first epoch
  EXPECT_TRUE(Model(no_storage, setup).predict(setup).has_value());
  EXPECT_FALSE(Model(no_storage, setup).predict(setup, Epochs::kFirst).has_value());
  Measured no_prep = round_numbers();
  no_prep.prep.clear();
  EXPECT_FALSE(Model(no_prep, setup).predict(setup).has_value());
}

}  // namespace
}  // namespace foreload
