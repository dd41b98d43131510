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
         plan.urgent;
}

TEST(MemoryPlanTest, ThePartsNeverExceedTheBudget) {
  for (Bytes budget = 8_MiB; budget < 64_GiB; budget += budget / 3) {
    for (bool substitutes : {false, true}) {
      for (bool direct : {false, true}) {
        MemoryNeeds needs = image_net(budget);
        needs.substitutes = substitutes;
        needs.direct = direct;
        const auto plan = plan_memory(needs);
        if (!plan) continue;
        EXPECT_LE(sum(needs, *plan), budget) << "budget " << budget;
        EXPECT_GE(plan->slots, 2u);
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

TEST(MemoryPlanTest, ADatasetThatFitsNeedsNoTransit) {
  MemoryNeeds needs = image_net(8_GiB);
  needs.all_footprint = 2_GiB;
  const auto plan = plan_memory(needs);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->home, 2_GiB);
  EXPECT_EQ(plan->transit, 0u);
}

TEST(MemoryPlanTest, ATooSmallBudgetSaysWhatIsNeeded) {
  const auto plan = plan_memory(image_net(32_MiB));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Code::kNoMemory);
  EXPECT_NE(plan.error().message.find("at least"), std::string::npos) << plan.error().message;
}

TEST(MemoryPlanTest, WithoutCacheNothingHasAHome) {
  MemoryNeeds needs = image_net(8_GiB);
  needs.cache = false;
  needs.all_footprint = 1_GiB;
  const auto plan = plan_memory(needs);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->home, 0u);
  EXPECT_GT(plan->transit, 0u);
}

}  // namespace
}  // namespace foreload
