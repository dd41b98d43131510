#include "policy/rewriting.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

TEST(RewritingTest, OnlySpareTimeIsSpentAndOnlyWhenItPays) {
  constexpr Duration kLong = std::chrono::seconds(1);
  EXPECT_TRUE(should_rewrite(Rewrite::kAuto, {.idle = true, .slack = kLong}));
  EXPECT_TRUE(should_rewrite(Rewrite::kAuto, {.idle = true, .epochs_left = kRewritePaysAfter, .slack = kLong}));
  EXPECT_FALSE(should_rewrite(Rewrite::kAuto, {.idle = true, .epochs_left = kRewritePaysAfter - 1, .slack = kLong}));
  EXPECT_FALSE(should_rewrite(Rewrite::kAuto, {.idle = false, .slack = kLong}));
}

TEST(RewritingTest, TheLearnerComesFirst) {
  using std::chrono::milliseconds;
  EXPECT_FALSE(should_rewrite(Rewrite::kAuto, {.idle = true})) << "it needs a batch now";
  EXPECT_TRUE(should_rewrite(Rewrite::kAuto, {.idle = true, .slack = milliseconds(10), .cost = milliseconds(5)}));
  EXPECT_FALSE(should_rewrite(Rewrite::kAuto, {.idle = true, .slack = milliseconds(10), .cost = milliseconds(6)}));
  EXPECT_TRUE(should_rewrite(Rewrite::kAuto, {.idle = true, .bytes_missing = true})) << "what it needs is not prep";
}

TEST(RewritingTest, TheCallersWordCounts) {
  EXPECT_TRUE(should_rewrite(Rewrite::kOn, {.idle = false, .epochs_left = 0}));
  EXPECT_FALSE(should_rewrite(Rewrite::kOff, {.idle = true}));
}

}  // namespace
}  // namespace foreload
