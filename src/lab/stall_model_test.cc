#include "lab/stall_model.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace foreload {
namespace {

TEST(StallModelTest, OriginsOverlap) {
  // 60 % from memory at 1000/s take 0.6 ms a sample, 40 % from storage at 200/s take 2 ms: storage alone decides.
  const std::array<FetchPath, 2> paths{{{0.6, 1000}, {0.4, 200}}};
  EXPECT_DOUBLE_EQ(fetch_rate(paths), 500);
  const std::array<FetchPath, 2> slow_memory{{{0.8, 100}, {0.2, 200}}};
  EXPECT_DOUBLE_EQ(fetch_rate(slow_memory), 125);
}

TEST(StallModelTest, WhatIsNotUsedDoesNotLimit) {
  const std::array<FetchPath, 2> paths{{{1, 1000}, {0, 1}}};
  EXPECT_DOUBLE_EQ(fetch_rate(paths), 1000);
  EXPECT_EQ(fetch_rate({}), kAnyRate);
}

// The shares of the time for fetch 300, prep 400, accelerator 1000: V = 300, W = 400.
TEST(StallModelTest, SharesOfTheTimeAddUp) {
  const Stalls found = stalls(300, 400, 1000);
  EXPECT_EQ(found.bound, Bound::kFetch);
  EXPECT_DOUBLE_EQ(found.rate, 300);
  EXPECT_DOUBLE_EQ(found.fetch, 0.25);
  EXPECT_DOUBLE_EQ(found.prep, 0.45);
  EXPECT_DOUBLE_EQ(found.busy, 0.3);
  EXPECT_DOUBLE_EQ(found.fetch + found.prep + found.busy, 1);
}

TEST(StallModelTest, TheSlowestIsTheBound) {
  EXPECT_EQ(stalls(500, 400, 1000).bound, Bound::kPrep);
  EXPECT_EQ(stalls(500, 400, 200).bound, Bound::kAccelerator);
  EXPECT_EQ(stalls(500, 400, 200).busy, 1);
  EXPECT_EQ(stalls(400, 400, 400).bound, Bound::kAccelerator);
}

TEST(StallModelTest, WithoutAnAcceleratorAllTimeIsStall) {
  const Stalls found = stalls(300, 400, kAnyRate);
  EXPECT_EQ(found.busy, 0);
  EXPECT_DOUBLE_EQ(found.fetch, 0.25);
  EXPECT_DOUBLE_EQ(found.prep, 0.75);
}

// c + (1 − c)·ln(1 − c), by hand: ln 0.5 = −0.693147, ln 0.65 = −0.430783, ln 0.35 = −1.049822.
TEST(StallModelTest, LruHitsAreThePublishedFormula) {
  EXPECT_NEAR(lru_hits(0.5), 0.153426, 1e-6);
  EXPECT_NEAR(lru_hits(0.35), 0.069991, 1e-6);
  EXPECT_NEAR(lru_hits(0.65), 0.282562, 1e-6);
  EXPECT_EQ(lru_hits(0), 0);
  EXPECT_EQ(lru_hits(1), 1);
  EXPECT_EQ(lru_hits(2), 1);
}

TEST(StallModelTest, ThePageCacheLiesBetween) {
  for (const double held : {0.1, 0.35, 0.65, 0.9}) {
    EXPECT_GT(page_cache_hits(held), lru_hits(held));
    EXPECT_LT(page_cache_hits(held), held);
  }
  EXPECT_EQ(page_cache_hits(1), 1);
}

// ImageNet's 110 KB from storage of 44 MB/s is 400/s; for 1000/s, 60 % have to be cached.
TEST(StallModelTest, SufficientCacheIsOneMinusStorageOverNeed) {
  EXPECT_DOUBLE_EQ(*sufficient_cache(1e6, 400, 1000), 0.6);
  EXPECT_EQ(*sufficient_cache(1e6, 1000, 1000), 0);
  EXPECT_EQ(*sufficient_cache(1e6, 2000, 1000), 0);
  // 600 of 1000 samples would have to come from a cache of 599/s.
  EXPECT_FALSE(sufficient_cache(599, 400, 1000).has_value());
  EXPECT_TRUE(sufficient_cache(600, 400, 1000).has_value());
}

TEST(StallModelTest, WithTheSufficientCacheNothingIsMissing) {
  for (const double needed : {500.0, 800.0, 3000.0}) {
    const double x = *sufficient_cache(1e5, 400, needed);
    const std::array<FetchPath, 2> paths{{{x, 1e5}, {1 - x, 400}}};
    EXPECT_NEAR(fetch_rate(paths), needed, 1e-6);
  }
}

TEST(StallModelTest, SufficientStorageIsTheShareThatIsNotCached) {
  EXPECT_DOUBLE_EQ(sufficient_storage(0.6, 1000), 400);
  EXPECT_EQ(sufficient_storage(1, 1000), 0);
}

// Two hosts of 64 samples each: 1/√(2π·64) = 0.0499; of two by chance a half would have to move.
TEST(StallModelTest, BalancedTrafficFallsWithTheRootOfTheBatch) {
  EXPECT_NEAR(balanced_traffic(2, 64), 0.049868, 1e-6);
  EXPECT_EQ(balanced_traffic(1, 64), 0);
  EXPECT_EQ(balanced_traffic(2, 0), 0.5);
}

}  // namespace
}  // namespace foreload
