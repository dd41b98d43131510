#include "plan/assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "plan/test_statistics.h"

namespace foreload {
namespace {

constexpr LastBatch kRules[] = {LastBatch::kAuto, LastBatch::kRagged, LastBatch::kPad, LastBatch::kDrop};

std::vector<std::uint64_t> counts_of_ranks(const SliceAssignment& assignment, std::uint64_t step) {
  std::vector<std::uint64_t> counts;
  for (std::uint32_t rank = 0; rank < assignment.shape().world; ++rank) {
    counts.push_back(assignment.share(step, rank).count);
  }
  return counts;
}

// The positions that the ranks together get, step by step and rank by rank.
std::vector<Position> delivered(const SliceAssignment& assignment) {
  std::vector<Position> positions;
  for (std::uint64_t step = 0; step < assignment.batches_per_epoch(); ++step) {
    for (std::uint32_t rank = 0; rank < assignment.shape().world; ++rank) {
      const Share share = assignment.share(step, rank);
      EXPECT_LE(share.count, assignment.max_share());
      for (std::uint64_t i = 0; i < share.count; ++i) {
        EXPECT_EQ(assignment.rank_of(share.first + i), rank);
        positions.push_back(share.first + i);
      }
    }
  }
  return positions;
}

// What stands at `positions` in an epoch whose order is `ids`.
std::vector<SampleId> samples_at(const SliceAssignment& assignment, std::span<const Position> positions,
                                 std::span<const SampleId> ids) {
  std::vector<SampleId> samples;
  for (const Position p : positions) samples.push_back(ids[assignment.source_position(p)]);
  return samples;
}

struct Trial {
  std::uint64_t seed = 0;
  JobShape shape;
  std::uint32_t other_world = 1;

  std::string text() const {
    return "trial seed " + std::to_string(seed) + ": samples " + std::to_string(shape.samples) + ", global batch " +
           std::to_string(shape.global_batch) + ", world " + std::to_string(shape.world) + " and " +
           std::to_string(other_world) + ", rule " + std::to_string(static_cast<int>(shape.last_batch));
  }
};

// Small sets, sets smaller than the world and batches larger than the set are as frequent as ordinary ones.
Trial random_trial(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  const std::uint64_t most_samples[] = {10, 100, 2'000, 100'001};
  const std::uint64_t most_batch[] = {4, 64, 1'000, 20'000};
  Trial trial;
  trial.seed = seed;
  trial.shape.samples = below(most_samples[below(4)]);
  trial.shape.world = static_cast<std::uint32_t>(1 + below(below(2) == 0 ? 4 : 64));
  trial.other_world = static_cast<std::uint32_t>(1 + below(64));
  trial.shape.last_batch = kRules[below(4)];
  // At least samples / 5000: many steps of many ranks take long and show nothing new.
  const std::uint64_t batch = 1 + trial.shape.samples / 5'000 + below(most_batch[below(4)]);
  trial.shape.global_batch = below(2) == 0 ? batch : batch * trial.shape.world;
  return trial;
}

// The rule's words once more, independent of the code under test.
std::uint64_t expected_positions(const JobShape& shape) {
  const bool pads = shape.last_batch == LastBatch::kPad || (shape.last_batch == LastBatch::kAuto && shape.world > 1);
  std::uint64_t positions = shape.samples;
  if (pads) {
    while (positions % shape.world != 0) ++positions;
  }
  if (shape.last_batch == LastBatch::kDrop) {
    while (positions % shape.global_batch != 0) --positions;
  }
  return positions;
}

// Every sample once; again only at the padded positions, in the epoch's order; less only what was dropped.
void expect_exactly_once(const SliceAssignment& assignment, std::span<const SampleId> ids) {
  const std::uint64_t samples = ids.size();
  std::vector<Position> expected(expected_positions(assignment.shape()));
  std::iota(expected.begin(), expected.end(), Position{0});
  const std::vector<Position> positions = delivered(assignment);
  ASSERT_EQ(assignment.positions_per_epoch(), expected.size());
  ASSERT_TRUE(positions == expected) << "positions are missing, repeated or out of order";
  EXPECT_EQ(assignment.padded(), std::max<std::uint64_t>(expected.size(), samples) - samples);

  std::vector<std::uint64_t> seen(samples);
  for (const SampleId id : samples_at(assignment, positions, ids)) ++seen[id];
  for (Position p = 0; p < samples; ++p) {
    const std::uint64_t times = expected.size() / samples + (p < expected.size() % samples ? 1 : 0);
    ASSERT_EQ(seen[ids[p]], times) << "sample " << ids[p] << " at position " << p;
  }
}

// Another world continues the same order; only how often the epoch's beginning is padded behind it may differ.
void expect_elastic(const Trial& trial, std::span<const SampleId> ids) {
  JobShape other_shape = trial.shape;
  other_shape.world = trial.other_world;
  const SliceAssignment here(trial.shape);
  const SliceAssignment there(other_shape);
  const std::uint64_t step = std::min(here.batches_per_epoch(), there.batches_per_epoch()) / 3;
  const Position consumed = step * trial.shape.global_batch;
  const std::vector<Position> mine = delivered(here);
  const std::vector<Position> theirs = delivered(there);
  const std::vector<SampleId> a = samples_at(here, std::span(mine).subspan(consumed), ids);
  const std::vector<SampleId> b = samples_at(there, std::span(theirs).subspan(consumed), ids);
  EXPECT_TRUE(std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin()));
  EXPECT_EQ(a.size() - here.padded(), b.size() - there.padded());
  EXPECT_EQ(shape_hash(true, trial.shape), shape_hash(true, other_shape));
}

TEST(AssignmentTest, EverySampleIsDeliveredExactlyOnceInRandomJobs) {
  const std::uint64_t seed = fresh_seed();
  for (std::uint64_t i = 0; i < (soak() ? 2'000 : 200) && !testing::Test::HasFailure(); ++i) {
    const Trial trial = random_trial(seed + i);
    SCOPED_TRACE(trial.text());
    const SliceAssignment assignment(trial.shape);
    const Schedule schedule({.samples = trial.shape.samples, .seed = trial.seed, .shuffle = i % 8 != 0});
    std::vector<SampleId> ids(trial.shape.samples);
    for (Position p = 0; p < ids.size(); ++p) ids[p] = schedule.sample_at(6, p);
    expect_exactly_once(assignment, ids);
    if (!testing::Test::HasFailure()) expect_elastic(trial, ids);
  }
}

TEST(AssignmentTest, OneRankIsRaggedByDefault) {
  const SliceAssignment assignment({.samples = 10, .global_batch = 4, .world = 1});
  EXPECT_EQ(assignment.positions_per_epoch(), 10U);
  EXPECT_EQ(assignment.padded(), 0U);
  ASSERT_EQ(assignment.batches_per_epoch(), 3U);
  EXPECT_EQ(assignment.batch_size(0), 4U);
  EXPECT_EQ(assignment.batch_size(2), 2U);
  EXPECT_EQ(assignment.share(2, 0).first, 8U);
  EXPECT_EQ(assignment.share(2, 0).count, 2U);
}

// torch: DistributedSampler(10 samples, 4 replicas) has 3 per rank, the last two indices repeat the first two.
TEST(AssignmentTest, SeveralRanksPadLikeDistributedSamplerByDefault) {
  const SliceAssignment assignment({.samples = 10, .global_batch = 8, .world = 4});
  EXPECT_EQ(assignment.positions_per_epoch(), 12U);
  EXPECT_EQ(assignment.padded(), 2U);
  EXPECT_EQ(assignment.source_position(9), 9U);
  EXPECT_EQ(assignment.source_position(10), 0U);
  EXPECT_EQ(assignment.source_position(11), 1U);
  ASSERT_EQ(assignment.batches_per_epoch(), 2U);
  EXPECT_EQ(counts_of_ranks(assignment, 0), (std::vector<std::uint64_t>{2, 2, 2, 2}));
  EXPECT_EQ(counts_of_ranks(assignment, 1), (std::vector<std::uint64_t>{1, 1, 1, 1}));
}

TEST(AssignmentTest, PaddingRepeatsASetThatIsSmallerThanThePaddingSeveralTimes) {
  const SliceAssignment assignment({.samples = 3, .global_batch = 16, .world = 8});
  ASSERT_EQ(assignment.positions_per_epoch(), 8U);
  EXPECT_EQ(assignment.padded(), 5U);
  std::vector<Position> sources;
  for (Position p = 0; p < 8; ++p) sources.push_back(assignment.source_position(p));
  EXPECT_EQ(sources, (std::vector<Position>{0, 1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(assignment.max_share(), 1U);
}

TEST(AssignmentTest, PaddedRanksAlwaysHaveEquallyManySamples) {
  for (std::uint64_t samples = 1; samples < 200; ++samples) {
    const SliceAssignment assignment({.samples = samples, .global_batch = 21, .world = 7});
    for (std::uint64_t step = 0; step < assignment.batches_per_epoch(); ++step) {
      const std::vector<std::uint64_t> counts = counts_of_ranks(assignment, step);
      ASSERT_EQ(std::count(counts.begin(), counts.end(), counts[0]), 7) << samples << " samples, step " << step;
    }
  }
}

TEST(AssignmentTest, RaggedBatchesOfTooFewSamplesAreEmptyForSomeRanks) {
  const SliceAssignment assignment({.samples = 10, .global_batch = 8, .world = 4, .last_batch = LastBatch::kRagged});
  ASSERT_EQ(assignment.batches_per_epoch(), 2U);
  EXPECT_EQ(counts_of_ranks(assignment, 0), (std::vector<std::uint64_t>{2, 2, 2, 2}));
  EXPECT_EQ(counts_of_ranks(assignment, 1), (std::vector<std::uint64_t>{0, 1, 0, 1}));
}

TEST(AssignmentTest, AGlobalBatchThatIsNoMultipleOfTheWorldIsCutEvenly) {
  const SliceAssignment assignment({.samples = 20, .global_batch = 10, .world = 3, .last_batch = LastBatch::kRagged});
  EXPECT_EQ(counts_of_ranks(assignment, 1), (std::vector<std::uint64_t>{3, 3, 4}));
  EXPECT_EQ(assignment.share(1, 1).first, 13U);
  EXPECT_EQ(assignment.max_share(), 4U);
}

TEST(AssignmentTest, DropLeavesOnlyFullBatches) {
  const JobShape shape{.samples = 10, .global_batch = 4, .world = 2, .last_batch = LastBatch::kDrop};
  EXPECT_EQ(SliceAssignment(shape).batches_per_epoch(), 2U);
  EXPECT_EQ(SliceAssignment(shape).positions_per_epoch(), 8U);
  EXPECT_EQ(SliceAssignment(shape).batch_size(1), 4U);
  EXPECT_EQ(SliceAssignment(shape).padded(), 0U);
  JobShape larger = shape;
  larger.global_batch = 11;
  EXPECT_EQ(SliceAssignment(larger).batches_per_epoch(), 0U);
  EXPECT_EQ(SliceAssignment(larger).max_share(), 0U);
}

TEST(AssignmentTest, AnEmptySetHasNoBatches) {
  for (const LastBatch rule : kRules) {
    const SliceAssignment assignment({.samples = 0, .global_batch = 8, .world = 4, .last_batch = rule});
    EXPECT_EQ(assignment.positions_per_epoch(), 0U);
    EXPECT_EQ(assignment.batches_per_epoch(), 0U);
    EXPECT_EQ(assignment.max_share(), 0U);
    EXPECT_EQ(assignment.padded(), 0U);
  }
}

TEST(AssignmentTest, HugeNumbersDoNotOverflow) {
  const std::uint64_t samples = 1ULL << 62;
  const std::uint32_t world = 0xffffffff;
  const SliceAssignment assignment(
      {.samples = samples, .global_batch = samples, .world = world, .last_batch = LastBatch::kRagged});
  const Share last = assignment.share(0, world - 1);
  EXPECT_EQ(last.first + last.count, samples);
  EXPECT_EQ(last.count, assignment.max_share());
  EXPECT_EQ(assignment.share(0, world / 2).first + assignment.share(0, world / 2).count,
            assignment.share(0, world / 2 + 1).first);
}

TEST(AssignmentTest, MisuseEndsTheProcess) {
  EXPECT_DEATH(SliceAssignment({.samples = 1, .global_batch = 0}), "a global batch has samples");
  EXPECT_DEATH(SliceAssignment({.samples = 1, .world = 0}), "a job has ranks");
  const SliceAssignment assignment({.samples = 8, .global_batch = 4, .world = 2});
  EXPECT_DEATH((void)assignment.share(2, 0), "steps of an epoch");
  EXPECT_DEATH((void)assignment.share(0, 2), "ranks are");
  EXPECT_DEATH((void)assignment.source_position(8), "positions of an epoch");
}

// Stored in states: the value of one plan is written down, and every part of the plan changes it.
TEST(AssignmentTest, ThePlanHashNamesThePlanAndNotTheWorld) {
  const JobShape shape{.samples = 1000, .global_batch = 256, .world = 8};
  const std::uint64_t hash = shape_hash(true, shape);
  EXPECT_EQ(hash, 0x3ca3eaab587d8cb7ULL);
  EXPECT_NE(hash, shape_hash(false, shape));
  for (const LastBatch rule : {LastBatch::kRagged, LastBatch::kPad, LastBatch::kDrop}) {
    JobShape other = shape;
    other.last_batch = rule;
    EXPECT_NE(hash, shape_hash(true, other));
  }
  JobShape other = shape;
  other.global_batch = 255;
  EXPECT_NE(hash, shape_hash(true, other));
  other = shape;
  other.world = 1;
  other.samples = 5;
  EXPECT_EQ(hash, shape_hash(true, other));
}

// Positions 2i and 2i+1 are mixed with each other, so they must meet on one rank, for every rule and world.
TEST(AssignmentTest, PairsStayWholeAndEveryPositionIsTakenOnce) {
  for (const LastBatch last : {LastBatch::kRagged, LastBatch::kPad, LastBatch::kDrop, LastBatch::kAuto}) {
    for (std::uint64_t samples = 1; samples < 60; ++samples) {
      for (const std::uint32_t world : {1u, 2u, 3u, 5u}) {
        for (const std::uint64_t batch : {2u * world, 2u * world + 2, 8u * world}) {
          const SliceAssignment assignment({samples, batch, world, last, 2});
          Position next = 0;
          for (std::uint64_t step = 0; step < assignment.batches_per_epoch(); ++step) {
            for (std::uint32_t rank = 0; rank < world; ++rank) {
              const Share share = assignment.share(step, rank);
              ASSERT_LE(share.count, assignment.max_share());
              if (share.count == 0) continue;
              ASSERT_EQ(share.first, next);
              ASSERT_EQ(share.first % 2, 0u);
              ASSERT_EQ(assignment.rank_of(share.first), rank);
              ASSERT_EQ(assignment.rank_of(share.first + share.count - 1), rank);
              next += share.count;
              ASSERT_TRUE(share.count % 2 == 0 || next == assignment.positions_per_epoch()) << "only the last is alone";
            }
          }
          ASSERT_EQ(next, assignment.positions_per_epoch());
        }
      }
    }
  }
}

TEST(AssignmentTest, PaddingGivesEveryRankEquallyManyPairs) {
  const SliceAssignment assignment(
      {.samples = 21, .global_batch = 12, .world = 3, .last_batch = LastBatch::kPad, .unit = 2});
  EXPECT_EQ(assignment.positions_per_epoch(), 24u);
  for (std::uint64_t step = 0; step < 2; ++step) {
    for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(assignment.share(step, rank).count, 4u);
  }
  const SliceAssignment alone({.samples = 21, .global_batch = 12, .last_batch = LastBatch::kPad, .unit = 2});
  EXPECT_EQ(alone.positions_per_epoch(), 21u) << "one rank needs no padding";
}

TEST(AssignmentTest, PairsDoNotChangeThePlanThatAStateBelongsTo) {
  const JobShape single{.samples = 21, .global_batch = 12, .world = 3};
  JobShape pairs = single;
  pairs.unit = 2;
  EXPECT_EQ(shape_hash(true, single), shape_hash(true, pairs));
}

}  // namespace
}  // namespace foreload
