#include "lab/flows.h"

#include <gtest/gtest.h>

#include <limits>

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

Flows::Path path(std::initializer_list<ResourceId> resources, double limit = kNoLimit) {
  Flows::Path made{.limit = limit};
  for (const ResourceId resource : resources) made.through(resource);
  return made;
}

TEST(FlowsTest, OneFlowTakesItsBytesOverTheRate) {
  Flows flows({100});
  flows.start(Time{0}, path({0}), 50, 7);
  ASSERT_EQ(flows.next_end(), Time(500ms));
  ASSERT_EQ(flows.ended(500ms).size(), 1u);
  EXPECT_EQ(flows.count(), 0u);
  EXPECT_FALSE(flows.next_end());
}

TEST(FlowsTest, TwoShareAlikeAndTheLongerOneSpeedsUp) {
  Flows flows({100});
  flows.start(Time{0}, path({0}), 50, 1);
  flows.start(Time{0}, path({0}), 100, 2);
  ASSERT_EQ(flows.next_end(), Time(1s));
  ASSERT_EQ(flows.ended(1s).front(), 1u);
  EXPECT_EQ(flows.next_end(), Time(1500ms));
}

// The first is held up by its own limit, so the second has what is left; the third is behind a narrower resource.
TEST(FlowsTest, WhatOneCanNotTakeIsForTheOthers) {
  Flows flows({100, 10, kNoLimit});
  flows.start(Time{0}, path({0, 2}, 20), 1000, 1);
  flows.start(Time{0}, path({0}), 1000, 2);
  flows.start(Time{0}, path({0, 1}), 1000, 3);
  EXPECT_DOUBLE_EQ(flows.rate(1), 20);
  EXPECT_DOUBLE_EQ(flows.rate(3), 10);
  EXPECT_DOUBLE_EQ(flows.rate(2), 70);
}

TEST(FlowsTest, AResourceCanCountRequests) {
  Flows flows({kNoLimit, 5});
  Flows::Path small{.limit = kNoLimit};
  small.through(0);
  small.through(1, 0.1);  // a request for every ten bytes
  flows.start(Time{0}, small, 100, 1);
  EXPECT_DOUBLE_EQ(flows.rate(1), 50);
}

TEST(FlowsTest, ACapacityThatChangesCountsFromThenOn) {
  Flows flows({100});
  flows.start(Time{0}, path({0}), 100, 1);
  flows.set_capacity(500ms, 0, 50);
  EXPECT_EQ(flows.next_end(), Time(1500ms));
  flows.set_capacity(1s, 0, 0);
  EXPECT_FALSE(flows.next_end());
  flows.set_capacity(2s, 0, 25);
  EXPECT_EQ(flows.next_end(), Time(3s));
}

TEST(FlowsTest, ACancelledOneLeavesItsShare) {
  Flows flows({100});
  flows.start(Time{0}, path({0}), 100, 1);
  flows.start(Time{0}, path({0}), 100, 2);
  flows.cancel(1s, 1);
  EXPECT_EQ(flows.count(), 1u);
  EXPECT_EQ(flows.next_end(), Time(1500ms));
}

TEST(FlowsTest, NothingExceedsACapacityWhateverTheFlows) {
  Flows flows({100, 37, 61, 15});
  for (std::uint64_t i = 0; i < 64; ++i) {
    flows.start(Time{0}, path({0, static_cast<ResourceId>(1 + i % 3)}, 1 + static_cast<double>(i % 7)), 1e6, i);
  }
  std::array<double, 4> sums{};
  for (std::uint64_t i = 0; i < 64; ++i) {
    sums[0] += flows.rate(i);
    sums[1 + i % 3] += flows.rate(i);
  }
  EXPECT_NEAR(sums[0], 100, 1e-6);
  EXPECT_LE(sums[1], 37 + 1e-6);
  EXPECT_LE(sums[2], 61 + 1e-6);
  EXPECT_LE(sums[3], 15 + 1e-6);
}

}  // namespace
}  // namespace foreload
