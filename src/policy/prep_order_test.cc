#include "policy/prep_order.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

using namespace std::chrono_literals;

TEST(PrepOrderTest, TheBatchNeededSoonestComesFirst) {
  const PrepCandidate candidates[] = {{0, 12, 3}, {1, 10, 0}, {2, 11, 1}};
  EXPECT_EQ(soonest_needed(candidates), 2u) << "batch 10 has nothing to prepare yet";
}

TEST(PrepOrderTest, TheLearnerThatWillRunOutFirstComesFirst) {
  const LearnerPace slow{.next = 5, .last = 100ms, .step = 50ms};
  const LearnerPace fast{.next = 90, .last = 100ms, .step = 10ms};
  EXPECT_LT(need_of(fast, 90, 105ms), need_of(slow, 5, 105ms));
  EXPECT_LT(need_of(slow, 5, 105ms), need_of(fast, 94, 105ms)) << "the fast one has enough until 150 ms";
  EXPECT_LT(need_of(fast, 90, 105ms), need_of(fast, 91, 105ms));
}

TEST(PrepOrderTest, OfLearnersThatHaveRunOutTheOneThatWaitsLongestComesFirst) {
  const LearnerPace first{.next = 5, .last = 100ms, .step = 1us};
  const LearnerPace second{.next = 9, .last = 90ms, .step = 2us};
  EXPECT_LT(need_of(second, 9, 200ms), need_of(first, 5, 200ms));
  EXPECT_LT(need_of(first, 5, 200ms), need_of(second, 10, 200ms)) << "but nobody gets a second before each has one";
}

TEST(PrepOrderTest, PacesOutOfAllBoundsOverflowNothing) {
  const LearnerPace wrong{.next = ~0ull, .last = Time::max(), .step = Duration::max()};
  EXPECT_GE(need_of(wrong, 0, 1s).at, 1s);
  EXPECT_GE(need_of({.next = 0, .last = Time::min(), .step = Duration::min()}, ~0ull, 1s).at, 1s);
}

TEST(PrepOrderTest, NothingReadyMeansNothingToDo) {
  const PrepCandidate candidates[] = {{0, 12, 0}};
  EXPECT_FALSE(soonest_needed(candidates));
  EXPECT_FALSE(soonest_needed({}));
}

}  // namespace
}  // namespace foreload
