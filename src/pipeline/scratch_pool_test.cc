#include "pipeline/scratch_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace foreload {
namespace {

TEST(ScratchPoolTest, SharesAndPoolAddUpToTheBytes) {
  const ScratchPool pool(1000, 3);
  EXPECT_EQ(pool.own_share(), 166u);
  EXPECT_EQ(pool.largest(), 166u + (1000 - 3 * 166));
}

TEST(ScratchPoolTest, LargeSamplesGoOneAtATime) {
  ScratchPool pool(2000, 2);
  std::atomic<int> inside{0};
  std::vector<std::jthread> workers;
  for (int w = 0; w < 4; ++w) {
    workers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        ASSERT_TRUE(pool.take(600));
        EXPECT_EQ(++inside, 1);
        --inside;
        pool.give(600);
      }
    });
  }
}

TEST(ScratchPoolTest, StopEndsTheWait) {
  ScratchPool pool(2000, 1);
  ASSERT_TRUE(pool.take(1000));
  std::jthread waiting([&] { EXPECT_FALSE(pool.take(1000)); });
  pool.stop();
}

TEST(ScratchPoolTest, ItGrowsForLargerSamplesAndNeverShrinks) {
  ScratchPool pool(100, 2);
  const Bytes before = pool.largest();
  pool.grow_to(1000);
  EXPECT_EQ(pool.largest(), 1000u);
  EXPECT_TRUE(pool.try_take(1000 - pool.own_share()));
  EXPECT_FALSE(pool.try_take(1));
  pool.grow_to(before);
  EXPECT_EQ(pool.largest(), 1000u);
}

}  // namespace
}  // namespace foreload
