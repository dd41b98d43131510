#include "policy/cost_model.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

using namespace std::chrono_literals;

TEST(OriginCostTest, SaysNothingBeforeItHasSeenEnough) {
  OriginCost cost;
  cost.on_rate(1e8);
  for (int i = 0; i < 255; ++i) cost.on_read_done(1ms);
  EXPECT_FALSE(cost.estimate(1000, 0).has_value());
  cost.on_read_done(1ms);
  EXPECT_TRUE(cost.estimate(1000, 0).has_value());
}

TEST(OriginCostTest, AddsWhatIsQueuedToTheLatency) {
  OriginCost cost;
  cost.on_rate(1e8);
  for (int i = 0; i < 300; ++i) cost.on_read_done(5ms);
  EXPECT_EQ(*cost.estimate(1'000'000, 0), 15ms);
  EXPECT_EQ(*cost.estimate(1'000'000, 9'000'000), 105ms);
}

TEST(OriginCostTest, QueuesDoNotCountAsLatencyAndSlowStorageIsNoticedInTheEnd) {
  OriginCost cost;
  cost.on_rate(1e9);
  for (int i = 0; i < 400; ++i) cost.on_read_done(i % 8 == 0 ? 2ms : 40ms);
  EXPECT_LT(*cost.estimate(1, 0), 8ms);
  for (int i = 0; i < 1000; ++i) cost.on_read_done(40ms);
  EXPECT_GT(*cost.estimate(1, 0), 39ms);
  for (int i = 0; i < 300; ++i) cost.on_rate(1e7);
  EXPECT_GT(*cost.estimate(1'000'000, 0), 130ms);
}

}  // namespace
}  // namespace foreload
