#include "lab/learners.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

RunStory story(std::uint32_t rank, std::vector<StepStory> steps, double seconds = 10) {
  RunStory told;
  told.rank = rank;
  told.consumed_until = seconds;
  told.steps = std::move(steps);
  return told;
}

StepStory step(std::uint64_t number, double wait, std::uint64_t misses = 0) {
  return {.step = number, .waits = {.fetch = wait}, .samples = 4, .misses = misses, .bytes = 400};
}

TEST(LearnersTest, TheSlowestOfEachStepIsWhatAJobInStepWaitsFor) {
  const std::vector<RunStory> stories{story(0, {step(0, 1), step(1, 0)}), story(1, {step(0, 0), step(1, 3)})};
  const LearnersStory learners = compare_learners(stories);
  EXPECT_EQ(learners.steps, 2u);
  EXPECT_NEAR(learners.longest_wait, 4, 1e-9);
  EXPECT_NEAR(learners.mean_wait, 2, 1e-9);
  EXPECT_NEAR(learners.lost(), 2, 1e-9);
  EXPECT_TRUE(learners.is_unequal());
  EXPECT_EQ(learners.learners[0].slowest, 1u);
  EXPECT_EQ(learners.learners[1].slowest, 1u);
  ASSERT_EQ(learners.worst.size(), 2u);
  EXPECT_EQ(learners.worst[0].rank, 1u);
  EXPECT_NEAR(learners.worst[0].waited, 3, 1e-9);
}

TEST(LearnersTest, EqualWaitsAreNoImbalance) {
  const std::vector<RunStory> stories{story(0, {step(0, 2), step(1, 2)}), story(1, {step(0, 2), step(1, 2)})};
  const LearnersStory learners = compare_learners(stories);
  EXPECT_NEAR(learners.lost(), 0, 1e-9);
  EXPECT_FALSE(learners.is_unequal());
  EXPECT_NEAR(learners.bytes_ratio, 1, 1e-9);
}

TEST(LearnersTest, MissesPerStepAreComparedByTheirMost) {
  const std::vector<RunStory> stories{story(0, {step(0, 0, 4), step(1, 0, 0)}),
                                      story(1, {step(0, 0, 0), step(1, 0, 4)})};
  EXPECT_NEAR(compare_learners(stories).misses_ratio, 2, 1e-9);  // each has as many over all, but not in a step
}

TEST(LearnersTest, OnlyCommonStepsCount) {
  const std::vector<RunStory> stories{story(0, {step(0, 1), step(2, 1), step(3, 1)}),
                                      story(1, {step(1, 1), step(2, 1)}), story(2, {step(2, 1), step(9, 1)})};
  const LearnersStory learners = compare_learners(stories);
  EXPECT_EQ(learners.steps, 1u);
  EXPECT_EQ(compare_learners({}).steps, 0u);
  const std::vector<RunStory> apart{story(0, {step(0, 1)}), story(1, {step(1, 1)})};
  EXPECT_EQ(compare_learners(apart).steps, 0u);
}

}  // namespace
}  // namespace foreload
