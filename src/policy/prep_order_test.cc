#include "policy/prep_order.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

TEST(PrepOrderTest, TheBatchNeededSoonestComesFirst) {
  const PrepCandidate candidates[] = {{0, 12, 3}, {1, 10, 0}, {2, 11, 1}};
  EXPECT_EQ(soonest_needed(candidates), 2u) << "batch 10 has nothing to prepare yet";
}

TEST(PrepOrderTest, NothingReadyMeansNothingToDo) {
  const PrepCandidate candidates[] = {{0, 12, 0}};
  EXPECT_FALSE(soonest_needed(candidates));
  EXPECT_FALSE(soonest_needed({}));
}

}  // namespace
}  // namespace foreload
