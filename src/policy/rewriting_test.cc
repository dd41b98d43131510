#include "policy/rewriting.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

TEST(RewritingTest, OnlySpareTimeIsSpentAndOnlyWhenItPays) {
  EXPECT_TRUE(should_rewrite(Rewrite::kAuto, {.idle = true}));
  EXPECT_TRUE(should_rewrite(Rewrite::kAuto, {.idle = true, .epochs_left = kRewritePaysAfter}));
  EXPECT_FALSE(should_rewrite(Rewrite::kAuto, {.idle = true, .epochs_left = kRewritePaysAfter - 1}));
  EXPECT_FALSE(should_rewrite(Rewrite::kAuto, {.idle = false}));
}

TEST(RewritingTest, TheCallersWordCounts) {
  EXPECT_TRUE(should_rewrite(Rewrite::kOn, {.idle = false, .epochs_left = 0}));
  EXPECT_FALSE(should_rewrite(Rewrite::kOff, {.idle = true}));
}

}  // namespace
}  // namespace foreload
