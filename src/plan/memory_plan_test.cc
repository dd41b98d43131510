#include "plan/memory_plan.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

MemoryNeeds image_net(Bytes budget) {
  return {.budget = budget,
          .slot_bytes = 64 * 3 * 224 * 224 * 4,
          .threads = 4,
          .runner_bytes = 1_MiB,
          .table_bytes = 20_MiB,
          .all_footprint = 140_GiB,
          .longest_footprint = 16_MiB,
          .mean_footprint = 110_KiB};
}

Bytes sum(const MemoryNeeds& needs, const MemoryPlan& plan) {
  return plan.slots * needs.slot_bytes + plan.scratch + needs.table_bytes + plan.bounce + plan.home + plan.transit +
         plan.urgent + plan.onward;
}

TEST(MemoryPlanTest, ThePartsNeverExceedTheBudget) {
  for (Bytes budget = 8_MiB; budget < 64_GiB; budget += budget / 3) {
    for (bool substitutes : {false, true}) {
      for (bool direct : {false, true}) {
        MemoryNeeds needs = image_net(budget);
        needs.substitutes = substitutes;
        needs.direct = direct;
        needs.disk = direct != substitutes;
        needs.hold = budget / 5;
        const auto plan = plan_memory(needs);
        if (!plan) continue;
        EXPECT_LE(sum(needs, *plan), budget) << "budget " << budget;
        EXPECT_GE(plan->slots, 2u);
        EXPECT_LE(plan->read_depth * (plan->bounce_each + 8_KiB) * direct, std::max(plan->bounce, Bytes{16_KiB}));
        EXPECT_LE(plan->longest_footprint, plan->transit);
      }
    }
  }
}

TEST(MemoryPlanTest, MostOfALargeBudgetIsCache) {
  const auto plan = plan_memory(image_net(8_GiB));
  ASSERT_TRUE(plan);
  EXPECT_GE(plan->home, 6_GiB);
}

TEST(MemoryPlanTest, ADatasetThatFitsIsCachedWhole) {
  MemoryNeeds needs = image_net(8_GiB);
  needs.all_footprint = 2_GiB;
  const auto plan = plan_memory(needs);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->home, 2_GiB);
  EXPECT_EQ(plan->transit, needs.longest_footprint);
}

TEST(MemoryPlanTest, ATooSmallBudgetSaysWhatIsNeeded) {
  const auto plan = plan_memory(image_net(32_MiB));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Code::kNoMemory);
  EXPECT_NE(plan.error().message.find("at least"), std::string::npos) << plan.error().message;
}

TEST(MemoryPlanTest, TheCallerMayAlwaysHoldWhatWasPromised) {
  MemoryNeeds needs = image_net(600_MiB);
  needs.held_batches = 9;
  const auto plan = plan_memory(needs);
  ASSERT_TRUE(plan);
  EXPECT_GE(plan->slots, 9u);
  needs.budget = 300_MiB;
  EXPECT_FALSE(plan_memory(needs)) << "nine batches do not fit, and fewer would break the promise";
}

TEST(MemoryPlanTest, WithoutCacheNothingHasAHome) {
  MemoryNeeds needs = image_net(8_GiB);
  needs.cache = false;
  needs.all_footprint = 1_GiB;
  const auto plan = plan_memory(needs);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->home, 0u);
  EXPECT_GT(plan->transit, 0u);
  EXPECT_EQ(plan->hold, 0u);
}

TEST(MemoryPlanTest, HoldsAreBesideWhatPassesAndComeBeforeTheCache) {
  MemoryNeeds needs = image_net(2_GiB);
  const auto without = plan_memory(needs);
  needs.hold = 100_MiB;
  const auto plan = plan_memory(needs);
  ASSERT_TRUE(plan && without);
  EXPECT_EQ(plan->hold, 100_MiB);
  EXPECT_EQ(plan->transit, without->transit + 100_MiB);
  EXPECT_EQ(plan->home, without->home - 100_MiB);
  needs.hold = 100_GiB;
  const auto most = plan_memory(needs);
  ASSERT_TRUE(most);
  EXPECT_LT(most->hold, 1_GiB);
  EXPECT_GT(most->home, 0u);
}

}  // namespace
}  // namespace foreload
