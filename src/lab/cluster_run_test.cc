#include "lab/cluster_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "foreload/schedule.h"

namespace foreload {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// 1,000 samples of 100 KB in steps of 10; storage of 100 MB/s takes one second for all of them. Nothing else limits.
ClusterSetup round_cluster() {
  ClusterSetup setup;
  setup.samples = 1000;
  setup.sample_bytes = 100'000;
  setup.batch = 10;
  setup.epochs = 2;
  setup.cache = 0;
  setup.storage_rate = 100e6;
  setup.storage_latency = 0;
  setup.network_rate = kNoLimit;
  setup.network_latency = 0;
  setup.memory_rate = kNoLimit;
  return setup;
}

RunReport run(const ClusterSetup& setup, const std::string& system, std::vector<Fault> faults = {}) {
  auto scene = make_scene(setup);
  EXPECT_TRUE(scene.ok()) << scene.error().message;
  auto kind = find_system(system);
  EXPECT_TRUE(kind.ok());
  auto report = simulate(*scene, **kind, {.faults = std::move(faults)});
  EXPECT_TRUE(report.ok()) << report.error().message;
  return *std::move(report);
}

std::vector<std::string> all_systems() {
  std::vector<std::string> names;
  for (const SystemKind& kind : system_kinds()) names.emplace_back(kind.name);
  return names;
}

TEST(ClusterRunTest, OneHostTakesAsLongAsStorageTakes) {
  const RunReport report = run(round_cluster(), "foreload");
  EXPECT_NEAR(report.seconds, 2, 1e-6);
  EXPECT_NEAR(report.epochs[0].seconds, 1, 1e-6);
  EXPECT_NEAR(report.epochs[0].samples_per_s, 1000, 1e-3);
  EXPECT_EQ(report.epochs[0].at(KeptAt::kStorage).bytes, 100'000'000u);
  EXPECT_NEAR(report.epochs[1].fetch_stall, 1, 1e-6);
}

TEST(ClusterRunTest, LatencyIsPaidOnceWhereReadsAreAhead) {
  ClusterSetup setup = round_cluster();
  setup.storage_latency = 0.25;  // and 128 reads at once bring 51 MB/s
  setup.storage_rate = 50e6;
  EXPECT_NEAR(run(setup, "foreload").seconds, 0.25 + 2 * 2, 1e-6);
}

TEST(ClusterRunTest, AReadThatWaitsHoldsUpWhoReadsOneByOne) {
  ClusterSetup setup = round_cluster();
  setup.cores = 4;
  setup.storage_latency = 0.01;  // 4 workers, 10 ms each: 400 samples/s
  const RunReport report = run(setup, "naive");
  EXPECT_NEAR(report.epochs[0].samples_per_s, 400, 8);
}

TEST(ClusterRunTest, TheSlowestOfThreeDecides) {
  ClusterSetup setup = round_cluster();
  setup.accelerator = 250;
  EXPECT_NEAR(run(setup, "none").seconds, 8, 1e-6);
  const RunReport accelerator = run(setup, "foreload");
  EXPECT_NEAR(accelerator.seconds, 8 + 0.01, 1e-6);  // the first batch is waited for
  EXPECT_NEAR(accelerator.epochs[1].busy, 1, 1e-6);
  setup.accelerator = 4000;
  setup.cores = 2;
  setup.prep = 100;  // 200/s
  const RunReport prep = run(setup, "foreload");
  EXPECT_NEAR(prep.epochs[1].samples_per_s, 200, 0.5);
  EXPECT_NEAR(prep.epochs[1].prep_stall, 1 - 200.0 / 4000, 0.01);
  EXPECT_NEAR(prep.epochs[1].busy, 200.0 / 4000, 1e-3);
}

TEST(ClusterRunTest, TwoHostsShareTheStorage) {
  ClusterSetup setup = round_cluster();
  setup.hosts = 2;
  EXPECT_NEAR(run(setup, "naive").seconds, 2, 1e-6);
  setup.storage_host_rate = 25e6;
  EXPECT_NEAR(run(setup, "naive").seconds, 4, 1e-6);
  setup.storage_host_rate = kNoLimit;
  setup.storage_requests = 500;  // half of what the bytes would need
  EXPECT_NEAR(run(setup, "naive").seconds, 4, 1e-6);
}

// All of the data fits into two hosts: the second epoch needs no storage, and half of it goes over the links.
TEST(ClusterRunTest, PeersAreAsFastAsTheirLinks) {
  ClusterSetup setup = round_cluster();
  setup.hosts = 2;
  setup.cache = 50'000'000;
  setup.network_rate = 10e6;
  setup.storage_on_network = 0;
  const RunReport report = run(setup, "partitioned");
  const EpochReport& later = report.steady();
  EXPECT_EQ(later.at(KeptAt::kStorage).bytes, 0u);
  EXPECT_EQ(later.at(KeptAt::kPeer).bytes, later.sent.bytes);
  EXPECT_NEAR(static_cast<double>(later.sent.bytes), 50e6, 5e6);
  EXPECT_NEAR(later.seconds, static_cast<double>(later.sent.bytes) / 2 / 10e6, 0.5);
}

TEST(ClusterRunTest, AStepIsAsLongAsItsSlowestLearner) {
  ClusterSetup setup = round_cluster();
  setup.hosts = 4;
  setup.accelerator = 100;
  setup.stragglers = 1;
  setup.straggler_factor = 3;
  EXPECT_NEAR(run(setup, "none").epochs[0].seconds, 25 * 0.1 * 3, 1e-6);
  setup.stragglers = 0;
  setup.jitter = 0.1;
  const RunReport jittered = run(setup, "none");
  EXPECT_GT(jittered.epochs[0].seconds, 2.5);
  EXPECT_GT(jittered.epochs[0].sync, 0.03);
  setup.jitter = 0;
  setup.gradient = 10'000'000;
  setup.network_rate = 100e6;
  EXPECT_NEAR(run(setup, "none").epochs[0].seconds, 25 * (0.1 + 1.5 * 0.1), 1e-6);
}

ClusterSetup busy_cluster() {
  ClusterSetup setup = round_cluster();
  setup.hosts = 4;
  setup.learners = 2;
  setup.samples = 4003;
  setup.spread = 0.4;
  setup.cache = 60'000'000;
  setup.epochs = 3;
  setup.accelerator = 400;
  setup.prep = 200;
  setup.jitter = 0.05;
  setup.network_rate = 500e6;
  setup.storage_latency = 0.002;
  setup.echo = 3;
  return setup;
}

TEST(ClusterRunTest, WhatIsSentIsReceivedAndWhatIsUsedCameFromSomewhere) {
  const ClusterSetup setup = busy_cluster();
  const auto lengths = sample_lengths(setup);
  for (const std::string& name : all_systems()) {
    if (name == "none") continue;
    for (const EpochReport& epoch : run(setup, name).epochs) {
      Amount all;
      for (const Amount& amount : epoch.from) all.add(amount);
      EXPECT_EQ(epoch.sent.bytes, epoch.at(KeptAt::kPeer).bytes) << name;
      EXPECT_EQ(all.samples - epoch.for_others.samples, epoch.positions) << name;
      EXPECT_NEAR(epoch.busy + epoch.fetch_stall + epoch.prep_stall + epoch.sync, 1, 1e-6) << name;
    }
  }
}

TEST(ClusterRunTest, EverySystemWithAFullShuffleDeliversTheSameBatches) {
  const ClusterSetup setup = busy_cluster();
  const Schedule schedule({.samples = setup.samples, .seed = setup.seed, .global_batch = setup.global_batch()});
  const std::uint64_t steps = (setup.samples + setup.global_batch() - 1) / setup.global_batch();
  for (const std::string& name : all_systems()) {
    auto scene = make_scene(setup);
    auto system = (*find_system(name))->make(*scene);
    if (!system->traits().exactly_once) continue;
    EXPECT_EQ(system->steps_per_epoch(), steps) << name;
    const RunReport report = run(setup, name);
    for (const EpochReport& epoch : report.epochs) {
      std::uint64_t hash = 0;
      for (Position at = 0; at < epoch.positions; ++at) {
        const SampleId id = schedule.sample_at(epoch.epoch, at % setup.samples);
        hash += hash_bytes(std::as_bytes(std::span(&id, 1)), at);
      }
      EXPECT_EQ(epoch.order_hash, hash) << name << ", epoch " << epoch.epoch;
    }
  }
}

TEST(ClusterRunTest, TheSameSeedGivesTheSameRun) {
  for (const std::string& name : all_systems()) {
    ClusterSetup setup = busy_cluster();
    const std::uint64_t first = run(setup, name).record_hash;
    EXPECT_EQ(run(setup, name).record_hash, first) << name;
    setup.seed = 1;
    EXPECT_NE(run(setup, name).record_hash, first) << name;
  }
}

TEST(ClusterRunTest, MoreIsNeverSlower) {
  const auto epoch_seconds = [](const char* name, double value) {
    ClusterSetup setup = busy_cluster();
    setup.jitter = 0;
    EXPECT_TRUE(set_value(setup, *find_parameter(name), value).ok());
    return run(setup, "foreload").steady().seconds;
  };
  const auto falls = [&](const char* name, std::initializer_list<double> values) {
    double before = kNoLimit;
    for (const double value : values) {
      const double now = epoch_seconds(name, value);
      EXPECT_LE(now, before * 1.001) << name << " = " << value;
      before = now;
    }
  };
  falls("storage-rate", {10e6, 30e6, 100e6, 1e9});
  falls("cache", {0, 20e6, 60e6, 120e6});
  falls("cores", {1, 2, 4, 8, 16});
  falls("accelerator", {50, 100, 400, 1000});
  falls("network-rate", {5e6, 20e6, 100e6, 1e9});
}

TEST(ClusterRunTest, FaultsCostTimeAndNothingElse) {
  const ClusterSetup setup = busy_cluster();
  for (const std::string& name : all_systems()) {
    const RunReport calm = run(setup, name);
    for (const std::uint64_t count : {1, 4, 12}) {
      const RunReport rough = run(setup, name, random_faults(setup, count, calm.seconds));
      for (Epoch epoch = 0; epoch < setup.epochs; ++epoch) {
        EXPECT_EQ(rough.epochs[epoch].order_hash, calm.epochs[epoch].order_hash) << name;
        EXPECT_EQ(rough.epochs[epoch].positions, calm.epochs[epoch].positions) << name;
      }
      EXPECT_GE(rough.seconds, calm.seconds * 0.98) << name;
    }
  }
}

TEST(ClusterRunTest, ADeadHostHoldsTheJobUpUntilItIsBackAndReadsAgain) {
  ClusterSetup setup = busy_cluster();
  setup.cache = 200'000'000;
  setup.jitter = 0;
  const RunReport calm = run(setup, "foreload");
  const double third = calm.epochs[0].seconds + calm.epochs[1].seconds;
  const Fault dead{.kind = FaultKind::kDeadHost, .at = third + 0.1, .until = third + 5.1, .host = 2};
  const RunReport report = run(setup, "foreload", {dead});
  EXPECT_GT(report.seconds, calm.seconds + 4.5);
  EXPECT_EQ(calm.epochs[2].at(KeptAt::kStorage).bytes, 0u);
  EXPECT_GT(report.epochs[2].at(KeptAt::kStorage).bytes, 0u);
  EXPECT_EQ(report.epochs[2].order_hash, calm.epochs[2].order_hash);
}

TEST(ClusterRunTest, AHostThatNobodyReachesIsReadAroundFromStorage) {
  ClusterSetup setup = busy_cluster();
  setup.cache = 200'000'000;
  const RunReport calm = run(setup, "foreload");
  const Fault cut{.kind = FaultKind::kDeadLink, .at = 0, .until = calm.seconds * 10, .host = 1};
  const RunReport report = run(setup, "foreload", {cut});
  EXPECT_GT(report.steady().at(KeptAt::kStorage).bytes, 0u);
  EXPECT_EQ(calm.steady().at(KeptAt::kStorage).bytes, 0u);
  EXPECT_EQ(report.steady().order_hash, calm.steady().order_hash);
}

TEST(ClusterRunTest, AStopIsHeard) {
  auto scene = make_scene(busy_cluster());
  ClusterSetup& setup = scene->setup;
  setup.batch = 1;
  const auto report = simulate(*scene, **find_system("naive"), {.stop = [] { return true; }});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kCancelled);
}

TEST(ClusterRunTest, TablesThatWouldNotFitAreRefusedBefore) {
  ClusterSetup setup;
  setup.hosts = 256;
  setup.samples = 1'281'167;
  SystemScene scene{.setup = setup};
  const auto report = simulate(scene, **find_system("lru"));
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kNoMemory);
}

}  // namespace
}  // namespace foreload
