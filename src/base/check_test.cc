#include "base/check.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

TEST(CheckDeathTest, EndsTheProcessAndSaysWhy) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const int slots = 3;
  EXPECT_DEATH(FORELOAD_CHECK(slots == 4, "there are four slots"), "slots == 4.*there are four slots");
}

TEST(CheckTest, EvaluatesItsConditionOnce) {
  int calls = 0;
  FORELOAD_CHECK(++calls == 1, "it was zero before");
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace foreload
