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

}  // namespace
}  // namespace foreload
