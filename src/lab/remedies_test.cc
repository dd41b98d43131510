#include "lab/remedies.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lab/lab_testing.h"

namespace foreload {
namespace {

const JobText kJob{.uri = "data",
                   .python_uri = "\"data\"",
                   .flags = {{"--batch", "64"}, {"--memory", "1GiB"}},
                   .arguments = {{"batch_size", "64"}},
                   .converted = "data-records",
                   .bytes_flags = {{"--dtype", "u8"}},
                   .bytes_arguments = {{"dtype", "\"u8\""}},
                   .has_host = false,
                   .memory = 1_GiB,
                   .machine_memory = 64_GiB,
                   .budget = [](Bytes cache) { return cache + 100_MiB; }};

const FormCosts kForms{
    .raw = {0.002, 100e3}, .record = {0.002, 100e3}, .crop_addressable = {0.001, 100e3, {{40e6, sure(0.5)}}}};

const Remedy* find(const std::vector<Remedy>& all, const std::string& words) {
  const auto found = std::ranges::find_if(all, [&](const Remedy& r) { return r.title.starts_with(words); });
  return found == all.end() ? nullptr : &*found;
}

TEST(RemediesTest, FetchStallsAreEndedByMemoryOrStorage) {
  const auto found = remedies(Model(round_numbers(), round_setup()), kJob);
  const Remedy* cache = find(found, "cache 572.2 MiB");
  ASSERT_NE(cache, nullptr);
  EXPECT_NEAR(cache->gain, 1.5, 1e-5);  // 400/s to 1000/s
  EXPECT_TRUE(cache->no_stall);
  EXPECT_EQ(cache->command, "foreload run data --batch 64 --memory 673MiB");
  EXPECT_EQ(cache->python, "foreload.DataLoader(\"data\", batch_size=64, memory=\"673MiB\")");
  const Remedy* storage = find(found, "storage of 100 MB/s");
  ASSERT_NE(storage, nullptr);
  EXPECT_NEAR(storage->gain, 1.5, 1e-5);
  EXPECT_TRUE(storage->command.empty());
  EXPECT_EQ(find(found, "convert"), nullptr);  // nothing is known about it
}

// However many pairs there are, what one change alone brings is named, too.
TEST(RemediesTest, PairsDoNotCrowdOutSingleOnes) {
  JobSetup setup = round_setup();
  setup.cores = setup.threads = 1;
  const auto found = remedies(Model(round_numbers(), setup, kForms), kJob);
  const auto is_pair = [](const Remedy& r) { return r.title.find(", and ") != std::string::npos; };
  EXPECT_LE(std::ranges::count_if(found, is_pair), 2);
  EXPECT_NE(find(found, "cache "), nullptr);
  EXPECT_NE(find(found, "storage of "), nullptr);
}

TEST(RemediesTest, PrepStallsAreEndedByConvertingOrByCores) {
  JobSetup setup = round_setup();
  setup.cores = setup.threads = 1;
  setup.cache = 1'000'000'000;
  const auto found = remedies(Model(round_numbers(), setup, kForms), kJob);
  const Remedy* convert = find(found, "convert");
  ASSERT_NE(convert, nullptr);
  EXPECT_NEAR(convert->gain, 1, 1e-6);
  EXPECT_TRUE(convert->no_stall);
  EXPECT_EQ(convert->command, "foreload convert data data-records");
  const Remedy* core = find(found, "1 more core per accelerator");
  ASSERT_NE(core, nullptr);
  EXPECT_NEAR(core->gain, 1, 1e-6);
  EXPECT_TRUE(core->no_stall);
  EXPECT_EQ(find(found, "cache"), nullptr);
  EXPECT_EQ(find(found, "storage"), nullptr);
}

TEST(RemediesTest, IdleCoresAreUsedFirst) {
  JobSetup setup = round_setup();
  setup.threads = 1;
  setup.cache = 1'000'000'000;
  const auto found = remedies(Model(round_numbers(), setup), kJob);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].title, "use all 4 cores");
  EXPECT_NEAR(found[0].gain, 1, 1e-6);
  EXPECT_EQ(found[0].command, "foreload run data --batch 64 --memory 1GiB --workers 4");
}

// 400/s from storage and 500/s from one core: more cores alone bring nothing, memory a quarter, both all.
TEST(RemediesTest, WhereBothLimitTheyGoTogether) {
  JobSetup setup = round_setup();
  setup.cores = setup.threads = 1;
  const auto found = remedies(Model(round_numbers(), setup), kJob);
  const Remedy* pair = find(found, "1 more core per accelerator, and cache 572.2 MiB");
  ASSERT_NE(pair, nullptr);
  EXPECT_NEAR(pair->gain, 1.5, 1e-5);
  EXPECT_TRUE(pair->no_stall);
  EXPECT_EQ(pair->command, "foreload run data --batch 64 --memory 673MiB");
  EXPECT_NEAR(find(found, "cache 190.7 MiB")->gain, 0.25, 1e-5);
  EXPECT_TRUE(std::ranges::none_of(found, [](const Remedy& r) { return r.title == "1 more core per accelerator"; }));
}

TEST(RemediesTest, ConvertedAndCachedIsOneCommand) {
  JobSetup setup = round_setup();
  setup.cores = setup.threads = 1;
  const auto found = remedies(Model(round_numbers(), setup, kForms), kJob);
  const Remedy* pair = find(found, "convert, and cache");
  ASSERT_NE(pair, nullptr);
  EXPECT_EQ(pair->command,
            "foreload convert data data-records && foreload run data-records --batch 64 --memory 291MiB");
  EXPECT_EQ(pair->python, "foreload.DataLoader(\"data-records\", batch_size=64, memory=\"291MiB\")");
}

// 300/s of prep, 400/s from storage: as many cores as storage can use.
TEST(RemediesTest, NoMoreCoresThanFetchingCanUse) {
  Measured measured = round_numbers();
  measured.prep = {{1, sure(300)}, {2, sure(600)}};
  JobSetup setup = round_setup();
  setup.cores = setup.threads = 1;
  const auto found = remedies(Model(measured, setup), kJob);
  const auto core = std::ranges::find(found, "1 more core per accelerator", &Remedy::title);
  ASSERT_NE(core, found.end());
  EXPECT_NEAR(core->gain, 1.0 / 3, 1e-6);
}

// An accelerator of 100,000/s and prep of 500/s: what one thread does says nothing about 200 of them.
TEST(RemediesTest, CoresAreAdvisedOnlyAsFarAsAnythingIsKnown) {
  Measured measured = round_numbers();
  measured.accelerator = sure(100'000);
  measured.prep = {{1, sure(500)}};
  JobSetup setup = round_setup();
  setup.cores = setup.threads = 1;
  setup.cache = 1'000'000'000;
  EXPECT_TRUE(remedies(Model(measured, setup), kJob).empty());
  measured.accelerator = sure(6000);
  measured.prep = {{1, sure(500)}, {2, sure(1000)}};
  setup.cores = setup.threads = 4;  // 2000/s; 8 cores, 4000/s, are as far as it goes
  const auto found = remedies(Model(measured, setup), kJob);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].title, "4 more cores per accelerator");
  EXPECT_NEAR(found[0].gain, 1, 1e-6);
  EXPECT_NE(found[0].says.find("and not beyond 8"), std::string::npos) << found[0].says;
}

// Eight learners and four cores that share a host with one worker: nobody is told to have none.
TEST(RemediesTest, EveryLearnerHasAWorker) {
  JobSetup setup = round_setup();
  setup.accelerators = 8;
  setup.threads = 1;
  setup.cache = 1'000'000'000;
  JobText job = kJob;
  job.has_host = true;
  const auto found = remedies(Model(round_numbers(), setup), job);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].command, "foreload run data --batch 64 --memory 1GiB --workers 1");
}

TEST(RemediesTest, WhatBringsNothingIsNotNamed) {
  JobSetup setup = round_setup();
  setup.cache = 1'000'000'000;
  EXPECT_TRUE(remedies(Model(round_numbers(), setup, kForms), kJob).empty());  // nothing stalls
  Measured nothing;
  EXPECT_TRUE(remedies(Model(nothing, setup), kJob).empty());
}

TEST(RemediesTest, NoMoreMemoryThanTheMachineHasIsAdvised) {
  JobText job = kJob;
  job.machine_memory = 500'000'000;
  job.budget = [](Bytes cache) { return cache + 100'000'000; };
  const auto found = remedies(Model(round_numbers(), round_setup()), job);
  const Remedy* cache = find(found, "cache 286.1 MiB");  // 0.8 · 500 MB − 100 MB
  ASSERT_NE(cache, nullptr);
  EXPECT_NEAR(cache->gain, 1 / 0.7 - 1, 1e-3);
  EXPECT_NE(cache->says.find("would end the fetch stall"), std::string::npos) << cache->says;
}

TEST(RemediesTest, LearnersOfAMachinePutTheirMemoryTogether) {
  JobSetup setup = round_setup();
  setup.accelerators = 2;
  setup.cache = 300'000'000;
  JobText job = kJob;
  job.machine_memory = 900'000'000;
  const auto found = remedies(Model(round_numbers(), setup), job);
  const Remedy* one = find(found, "one cache");
  ASSERT_NE(one, nullptr);
  EXPECT_NEAR(one->gain, 0.7 / 0.4 - 1, 1e-6);
  // With a host, --memory is that of all its learners.
  EXPECT_EQ(one->command, "foreload run data --batch 64 --host job --memory 2048MiB");
  EXPECT_EQ(one->python, "foreload.DataLoader(\"data\", batch_size=64, host=\"job\", memory=\"2048MiB\")");
  job.has_host = true;
  EXPECT_EQ(find(remedies(Model(round_numbers(), setup), job), "one cache"), nullptr);
}

// Without a cache of its own, a loader is told to have one; the flag that forbids it goes.
TEST(RemediesTest, WhoHasNoCacheIsToldToHaveOne) {
  JobSetup setup = round_setup();
  setup.policy = CachePolicy::kPageCache;
  JobText job = kJob;
  job.flags.push_back({"--no-cache", ""});
  const auto found = remedies(Model(round_numbers(), setup), job);
  const Remedy* cache = find(found, "cache 572.2 MiB");
  ASSERT_NE(cache, nullptr);
  EXPECT_EQ(cache->command, "foreload run data --batch 64 --memory 673MiB");
}

TEST(RemediesTest, BestComesFirst) {
  JobSetup setup = round_setup();
  setup.policy = CachePolicy::kLru;
  setup.cache = 500'000'000;
  const auto found = remedies(Model(round_numbers(), setup, kForms), kJob);
  ASSERT_GE(found.size(), 3u);
  EXPECT_TRUE(std::ranges::is_sorted(found, std::greater<>(), &Remedy::gain));
  EXPECT_NE(find(found, "evict nothing"), nullptr);
}

}  // namespace
}  // namespace foreload
