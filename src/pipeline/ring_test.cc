#include "pipeline/ring.h"

#include "pipeline/ring_testing.h"

namespace foreload {
namespace {

using namespace ring_testing;

TEST(RingTest, ABatchIsPublishedWhenItsLastSampleIsDone) {
  auto ring = make(2, 3);
  const auto slot = open(*ring, plan(0, 3));
  ASSERT_TRUE(slot);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(ring->take(kOwn, 0));
    mark_ready(*ring, {*slot, i}, Time{5}, 100 + i, 200 + i);
    const auto item = ring->claim();
    ASSERT_TRUE(item);
    EXPECT_EQ(item->index, i);
    const bool last = ring->finish(*item, {.busy = Duration{10}, .damaged = i == 1});
    EXPECT_EQ(last, i == 2);
  }
  EXPECT_FALSE(ring->take(kOwn, 0)) << "not before the batch stage is done";
  ring->publish(*slot, Duration{12});
  EXPECT_EQ(ring->take(kOwn, 0), slot);
  EXPECT_EQ(ring->ids(*slot)[2], 102u);
  EXPECT_EQ(ring->labels(*slot)[1], 201);
  EXPECT_EQ(ring->positions(*slot)[2], 2u);
  EXPECT_EQ(ring->cost_of(*slot).prep_busy, Duration{42});
  EXPECT_EQ(ring->cost_of(*slot).damaged, 1u);
  EXPECT_FALSE(ring->take(kOwn, 0)) << "a batch is delivered once";
}

TEST(RingTest, BatchesAreTakenInOrderWhicheverFinishesFirst) {
  auto ring = make(2, 1);
  const auto first = open(*ring, plan(0, 1));
  const auto second = open(*ring, plan(1, 1));
  EXPECT_FALSE(open(*ring, plan(2, 1))) << "both slots are in use";
  fill(*ring, *second, 1);
  EXPECT_FALSE(ring->take(kOwn, 0));
  fill(*ring, *first, 1);
  EXPECT_EQ(ring->take(kOwn, 0), first);
  EXPECT_EQ(ring->take(kOwn, 1), second);
}

TEST(RingTest, WorkersTurnToTheSoonestNeededBatch) {
  auto ring = make(2, 2);
  const auto later = open(*ring, plan(5, 2));
  const auto sooner = open(*ring, plan(4, 2));
  mark_ready(*ring, {*later, 0}, Time{1});
  mark_ready(*ring, {*sooner, 1}, Time{1});
  EXPECT_EQ(ring->claim()->slot, *sooner);
  EXPECT_EQ(ring->claim()->slot, *later);
  EXPECT_FALSE(ring->claim());
}

TEST(RingTest, ARaggedSlotHasLengthsForTheBatchStageAndThenValuesAndOffsets) {
  const RingOptions options{.slots = 1, .batch = 2, .sample_bytes = 12, .ragged_element = 4};
  auto ring = *Ring::create(options);
  ring->begin(0);
  const auto slot = open(*ring, plan(0, 2));
  for (std::uint32_t i = 0; i < 2; ++i) mark_ready(*ring, {*slot, i}, Time{1});
  EXPECT_FALSE(ring->finish(*ring->claim(), {.length = 3}));
  EXPECT_TRUE(ring->finish(*ring->claim(), {.length = 1}));
  const auto lengths = ring->lengths(*slot);
  ASSERT_EQ(lengths.size(), 3u);
  EXPECT_EQ(lengths[1], 3u);
  EXPECT_EQ(lengths[2], 1u);
  lengths[2] = 4;
  ring->publish(*slot);
  ASSERT_TRUE(ring->take(kOwn, 0));
  EXPECT_EQ(ring->data(*slot).size(), 16u);
  EXPECT_EQ(ring->offsets(*slot).size(), 3u);
  ring->release(kOwn, *slot);
  ASSERT_TRUE(open(*ring, plan(1, 0)));
  EXPECT_EQ(ring->data(*slot).size(), 0u);
  ASSERT_EQ(ring->offsets(*slot).size(), 1u);
  EXPECT_EQ(ring->offsets(*slot)[0], 0u);
}

TEST(RingTest, LengthsThatAnotherProcessWroteStayInsideOfTheSlot) {
  auto ring = *Ring::create({.slots = 1, .batch = 2, .sample_bytes = 12, .ragged_element = 4});
  ring->begin(0);
  const auto slot = open(*ring, plan(0, 2));
  fill(*ring, *slot, 2);
  ASSERT_TRUE(ring->take(kOwn, 0));
  ring->lengths(*slot).back() = std::uint64_t{1} << 62;
  EXPECT_LE(ring->data(*slot).size(), 24u);
}

TEST(RingTest, ALaterBatchGivesWayWhenAnEarlierOneIsDoneAgain) {
  auto ring = make(3, 1);
  const auto first = open(*ring, plan(4, 1));
  const auto later = open(*ring, plan(5, 1));
  const auto latest = open(*ring, plan(6, 1));
  fill(*ring, *later, 1);
  fill(*ring, *latest, 1);
  EXPECT_FALSE(ring->free_slot());
  EXPECT_FALSE(ring->recall_after(6));
  EXPECT_EQ(ring->recall_after(4), latest);
  EXPECT_EQ(ring->free_slot(), latest);
  EXPECT_FALSE(ring->take(kOwn, 6));
  fill(*ring, *first, 1);
  EXPECT_EQ(ring->take(kOwn, 4), first);
  EXPECT_EQ(ring->take(kOwn, 5), later) << "what is left is as it was";
  EXPECT_FALSE(ring->recall_after(3)) << "what the learner has stays";
}

TEST(RingTest, WhatIsGivenBackIsPreparedBySomebodyElse) {
  auto ring = make(1, 2);
  const auto slot = open(*ring, plan(0, 2));
  mark_ready(*ring, {*slot, 0}, Time{1});
  mark_ready(*ring, {*slot, 1}, Time{1});
  ring->give_back(*ring->claim());
  EXPECT_FALSE(ring->take(kOwn, 0));
  while (const auto item = ring->claim()) {
    if (ring->finish(*item, {})) ring->publish(item->slot);
  }
  EXPECT_EQ(ring->take(kOwn, 0), slot);
}

// Somebody finishes just when it is given up.
TEST(RingTest, ABatchThatIsPublishedIsNotRetired) {
  auto ring = make(2, 1);
  const auto slot = open(*ring, plan(0, 1));
  fill(*ring, *slot, 1);
  EXPECT_FALSE(ring->retire(*slot));
  EXPECT_EQ(ring->take(kOwn, 0), slot);
}

TEST(RingTest, ColumnsThatAChainNeedsAreCountedAndOthersTakeNothing) {
  const RingOptions plain{.slots = 2, .batch = 4095, .sample_bytes = 64};  // columns of whole pages
  RingOptions ragged = plain;
  ragged.ragged_element = 2;
  RingOptions mixed = plain;
  mixed.mixes = true;
  EXPECT_GE(Ring::region_bytes(ragged), Ring::region_bytes(plain) + 2 * 4096 * sizeof(std::uint64_t));
  EXPECT_GE(Ring::region_bytes(mixed), Ring::region_bytes(plain) + 2 * 4095 * sizeof(Mix));
  const auto ring = *Ring::create(plain);
  EXPECT_TRUE(ring->mixes(0).empty());
  EXPECT_TRUE(ring->offsets(0).empty());
}

TEST(RingTest, AFailedSampleFailsItsBatchAndTheFirstOneSpeaks) {
  auto ring = make(1, 2);
  const auto slot = open(*ring, plan(0, 2));
  mark_ready(*ring, {*slot, 0}, Time{1});
  mark_ready(*ring, {*slot, 1}, Time{1});
  const auto a = ring->claim();
  const auto b = ring->claim();
  ring->reject(*b, {Code::kBadSample, "second"});
  ring->reject(*a, {Code::kIo, "first"});
  EXPECT_EQ(ring->settled(*slot), 2u);
  EXPECT_EQ(ring->rejected(*slot), 2u);
  EXPECT_EQ(ring->settled(*b), Settled::kBad);
  EXPECT_FALSE(ring->fail(*b, ring->reason(*b)));
  EXPECT_TRUE(ring->fail(*a, ring->reason(*a)));
  ring->publish(*slot);
  ASSERT_TRUE(ring->take(kOwn, 0));
  const auto error = ring->error_of(*slot);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "first");
  EXPECT_EQ(error->code, Code::kIo);
}

TEST(RingTest, ABadSampleMayWaitForOtherBytes) {
  auto ring = make(1, 1);
  const auto slot = open(*ring, plan(0, 1));
  mark_ready(*ring, {*slot, 0}, Time{1});
  EXPECT_EQ(ring->bytes_complete(*slot), Time{1});
  const auto bad = ring->claim();
  ring->reject(*bad, {Code::kBadSample, std::string(1000, 'x')});
  EXPECT_EQ(ring->reason(*bad).message.size(), Ring::kMostReason - 1);
  ring->wait_again(*bad, true);
  EXPECT_FALSE(ring->claim());
  EXPECT_FALSE(ring->bytes_complete(*slot));
  fill(*ring, *slot, 1);
  EXPECT_TRUE(ring->take(kOwn, 0));
  EXPECT_EQ(ring->cost_of(*slot).replaced, 1u);
}

TEST(RingTest, AnEmptyBatchIsPublishedAtOnce) {
  auto ring = make(1, 4);
  ASSERT_TRUE(open(*ring, plan(0, 0)));
  EXPECT_TRUE(ring->take(kOwn, 0));
}

TEST(RingTest, StopEndsEveryWait) {
  auto ring = make(1, 1);
  const std::uint32_t work = ring->work_signal();
  const std::uint32_t published = ring->published_signal();
  std::jthread worker([&] { EXPECT_FALSE(ring->wait_for_work(work, kNever)); });
  std::jthread consumer([&] { EXPECT_FALSE(ring->wait_for_batch(kOwn, published)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ring->stop();
}

TEST(RingTest, ResetKeepsLeasedSlotsAndFreesTheOthers) {
  auto ring = make(2, 1);
  fill(*ring, *open(*ring, plan(0, 1)), 1);
  const auto leased = ring->take(kOwn, 0);
  ASSERT_TRUE(open(*ring, plan(1, 1)));
  ring->stop();
  ring->reset();
  EXPECT_EQ(ring->held(kOwn), 1u);
  EXPECT_TRUE(open(*ring, plan(7, 1)));
  EXPECT_FALSE(open(*ring, plan(8, 1)));
  ring->release(kOwn, *leased);
  EXPECT_TRUE(open(*ring, plan(8, 1)));
}

TEST(RingTest, ManyThreadsDeliverEverySampleOnce) {
  Traffic traffic(3, 5, 2000);
  traffic.start(3);
  traffic.read(kOwn, 0);
}

// Many items that become ready in any order, and more workers than cores: none is overlooked.
TEST(RingTest, ItemsThatBecomeReadyBehindAWorkersLookAreFound) {
  Traffic traffic(2, 512, 60);
  traffic.start(8);
  traffic.read(kOwn, 0);
}

TEST(RingTest, ARetiredSlotRestsUntilItsLastClaimIsSettled) {
  auto ring = make(1, 2);
  const auto slot = open(*ring, plan(0, 2));
  mark_ready(*ring, {*slot, 0}, Time{1});
  mark_ready(*ring, {*slot, 1}, Time{1});
  const auto late = ring->claim();
  ASSERT_TRUE(ring->retire(*slot));
  EXPECT_FALSE(ring->claim()) << "nobody claims of it";
  EXPECT_FALSE(ring->free_slot()) << "somebody may still write to it";
  EXPECT_FALSE(ring->finish(*late, {})) << "nor is it completed";
  EXPECT_EQ(ring->free_slot(), slot);
  EXPECT_FALSE(ring->take(kOwn, 0));
}

}  // namespace
}  // namespace foreload
