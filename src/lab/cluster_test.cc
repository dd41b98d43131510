#include "lab/cluster.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "lab/faults.h"

namespace foreload {
namespace {

TEST(ClusterTest, EveryParameterCanBeSetAndSaysItsValue) {
  for (const Parameter& parameter : parameters()) {
    ClusterSetup setup;
    const double value = std::max(parameter.least, 1.0);
    ASSERT_TRUE(set_value(setup, parameter, value).ok()) << parameter.name;
    EXPECT_EQ(value_of(setup, parameter), value) << parameter.name;
    EXPECT_FALSE(text_of(parameter, value).empty());
    EXPECT_FALSE(set_value(setup, parameter, std::nan("")).ok()) << parameter.name;
    EXPECT_FALSE(set_value(setup, parameter, -1).ok()) << parameter.name;
  }
}

TEST(ClusterTest, TextIsReadInItsUnits) {
  ClusterSetup setup;
  ASSERT_TRUE(set_parameter(setup, "storage-rate", "2GB/s").ok());
  EXPECT_EQ(setup.storage_rate, 2e9);
  ASSERT_TRUE(set_parameter(setup, "storage-latency", "5ms").ok());
  EXPECT_DOUBLE_EQ(setup.storage_latency, 0.005);
  ASSERT_TRUE(set_parameter(setup, "accelerator", "none").ok());
  EXPECT_TRUE(std::isinf(setup.accelerator));
  EXPECT_FALSE(set_parameter(setup, "hosts", "none").ok());
  EXPECT_FALSE(set_parameter(setup, "hosts", "1.5").ok());
  EXPECT_FALSE(set_parameter(setup, "storage-rate", "0").ok());
  const Status unknown = set_parameter(setup, "storag-rate", "1");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("storag-rate"), std::string::npos);
}

TEST(ClusterTest, AFileSetsManyAndNamesTheLineThatIsWrong) {
  ClusterSetup setup;
  ASSERT_TRUE(read_cluster(setup, "# mine\n[hosts]\nhosts = 8\nstorage_rate = \"4GB/s\"  # shared\n", "my.toml").ok());
  EXPECT_EQ(setup.hosts, 8u);
  EXPECT_EQ(setup.storage_rate, 4e9);
  for (const char* text : {"hosts = 8\nhosts = 9", "hosts 8", "hosts = many", "host = 8", "storage-rate = 0"}) {
    const Status read = read_cluster(setup, text, "my.toml");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(read.error().message.find("my.toml, line"), std::string::npos) << read.error().message;
  }
}

TEST(ClusterTest, WhatCanNotBeIsRefusedInWords) {
  ClusterSetup setup;
  EXPECT_TRUE(check_cluster(setup).ok());
  setup.cache = setup.memory + 1;
  EXPECT_NE(check_cluster(setup).error().message.find("does not fit"), std::string::npos);
  setup = {};
  setup.batch = setup.samples + 1;
  EXPECT_FALSE(check_cluster(setup).ok());
  setup = {};
  setup.learners = 4;
  setup.jobs = 3;
  EXPECT_FALSE(check_cluster(setup).ok());
}

TEST(ClusterTest, LengthsHaveTheirMeanAndSpreadAndAreTheSameEveryTime) {
  ClusterSetup setup;
  setup.spread = 0.5;
  const auto lengths = sample_lengths(setup);
  EXPECT_EQ(lengths, sample_lengths(setup));
  const double sum = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  EXPECT_NEAR(sum / setup.dataset_bytes(), 1, 0.01);
  double squares = 0;
  for (const std::uint32_t length : lengths) squares += std::pow(std::log(length / setup.sample_bytes) + 0.125, 2);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(lengths.size())), 0.5, 0.01);
}

TEST(ClusterTest, FaultsAreReadAndRefusedInWords) {
  ClusterSetup setup;
  setup.hosts = 4;
  const auto dead = parse_fault("dead-host:3@10s-25s", setup);
  ASSERT_TRUE(dead.ok());
  EXPECT_EQ(dead->kind, FaultKind::kDeadHost);
  EXPECT_EQ(dead->host, 3u);
  EXPECT_EQ(dead->until, 25);
  const auto slow = parse_fault("slow-storage@5s-8s*10", setup);
  ASSERT_TRUE(slow.ok());
  EXPECT_EQ(slow->factor, 10);
  for (const char* text : {"", "dead-host", "dead-host:4@1s-2s", "dead-host:0@2s-1s", "tired-host:0@1s-2s",
                           "slow-link:0@1s-2s*0", "slow-link:x@1s-2s"}) {
    EXPECT_FALSE(parse_fault(text, setup).ok()) << text;
  }
}

}  // namespace
}  // namespace foreload
