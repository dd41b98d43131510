#include "tier/gaps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace foreload {
namespace {

TEST(GapsTest, AHoleIsFilledByWhatLeftIt) {
  Gaps gaps;
  gaps.release(0, 1000);
  const Bytes first = *gaps.allocate(300);
  const Bytes second = *gaps.allocate(100);
  (void)gaps.allocate(600);
  gaps.release(first, 300);
  gaps.release(second, 100);
  EXPECT_EQ(gaps.count(), 1u) << "neighbours grow together";
  EXPECT_TRUE(gaps.allocate(400));
  EXPECT_FALSE(gaps.allocate(1));
  gaps.release(900, 100);
  gaps.release(0, 300);
  EXPECT_EQ(gaps.allocate(100), 900u) << "the smallest that fits";
  EXPECT_EQ(gaps.allocate(300), 0u);
}

TEST(GapsTest, RandomUseNeverOverlapsAndEndsWhole) {
  const unsigned seed = 5;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  constexpr Bytes kSize = 5000;
  Gaps gaps;
  gaps.release(0, kSize);
  std::vector<bool> taken(kSize);
  std::vector<std::pair<Bytes, Bytes>> live;
  for (int i = 0; i < 20000; ++i) {
    if (live.empty() || random() % 2 == 0) {
      const Bytes length = 1 + random() % 200;
      const auto offset = gaps.allocate(length);
      if (!offset) continue;
      ASSERT_LE(*offset + length, kSize);
      for (Bytes b = *offset; b < *offset + length; ++b) {
        ASSERT_FALSE(taken[b]);
        taken[b] = true;
      }
      live.emplace_back(*offset, length);
    } else {
      std::swap(live[random() % live.size()], live.back());
      const auto [offset, length] = live.back();
      live.pop_back();
      for (Bytes b = offset; b < offset + length; ++b) taken[b] = false;
      gaps.release(offset, length);
    }
    ASSERT_EQ(gaps.free_bytes(), static_cast<Bytes>(std::ranges::count(taken, false)));
  }
  for (const auto& [offset, length] : live) gaps.release(offset, length);
  EXPECT_EQ(gaps.count(), 1u);
  EXPECT_EQ(gaps.free_bytes(), kSize);
}

TEST(GapsTest, TheNumberOfGapsIsBounded) {
  Gaps gaps;
  for (Bytes i = 0; i < Gaps::kMost + 1000; ++i) gaps.release(i * 10, 1 + i % 9);
  EXPECT_EQ(gaps.count(), Gaps::kMost);
  EXPECT_TRUE(gaps.allocate(9)) << "the largest are kept";
}

}  // namespace
}  // namespace foreload
