#include <atomic>

#include "base/region.h"
#include "base/shared_memory.h"
#include "pipeline/ring.h"
#include "pipeline/ring_testing.h"

namespace foreload {
namespace {

using namespace ring_testing;

// Readers that hold several batches, and others that come and go in the middle.
TEST(RingReaderTest, ManyReadersGetEveryBatchWhole) {
  Traffic traffic(6, 4, 1500);
  Ring& ring = traffic.ring();
  std::vector<std::jthread> readers;
  for (unsigned i = 0; i < 3; ++i) {
    const auto reader = ring.add_reader();
    ASSERT_TRUE(reader);
    ASSERT_TRUE(ring.attach(*reader, 0, false));
    readers.emplace_back([&, reader, i] {
      traffic.read(*reader, 0, i + 1);
      ring.detach(*reader);
      ring.remove_reader(*reader);
    });
  }
  std::atomic<bool> ended{false};
  std::uint64_t visits = 0;
  std::jthread visitor([&] {
    while (!ended) {
      const auto reader = ring.add_reader();
      ASSERT_TRUE(reader);
      const std::uint64_t number = ring.pace(kOwn).next;
      if (ring.attach(*reader, number, false)) {
        for (int turn = 0; turn < 1000 && !ended; ++turn) {
          const auto slot = ring.take(*reader, number);
          if (!slot) continue;
          EXPECT_EQ(ring.plan_of(*slot).number, number);
          std::uint64_t value = 0;
          std::memcpy(&value, ring.data(*slot).data(), sizeof value);
          EXPECT_EQ(value, number * 4);
          ring.release(*reader, *slot);
          ++visits;
          break;
        }
        ring.detach(*reader);
      }
      ring.remove_reader(*reader);
    }
  });
  traffic.start(2);
  traffic.read(kOwn, 0);
  readers.clear();
  ended = true;
  visitor.join();
  EXPECT_GT(visits, 0u);
}

TEST(RingReaderTest, ASlotIsFreeWhenEveryReaderHasPassedIt) {
  auto ring = make(2, 1);
  const auto other = ring->add_reader();
  ASSERT_TRUE(ring->attach(*other, 0, false));
  fill(*ring, *open(*ring, plan(0, 1)), 1);
  fill(*ring, *open(*ring, plan(1, 1)), 1);
  const auto slot = ring->take(kOwn, 0);
  ASSERT_TRUE(slot);
  ring->release(kOwn, *slot);
  EXPECT_FALSE(ring->take(kOwn, 0)) << "a reader gets a batch once";
  EXPECT_FALSE(ring->free_slot());
  EXPECT_EQ(ring->take(*other, 0), slot);
  EXPECT_FALSE(ring->free_slot()) << "it is being read";
  ring->release(*other, *slot);
  EXPECT_EQ(ring->free_slot(), slot);
}

TEST(RingReaderTest, OneThatIsDismissedKeepsWhatItReads) {
  auto ring = make(2, 1);
  const auto other = ring->add_reader();
  ASSERT_TRUE(ring->attach(*other, 0, false));
  fill(*ring, *open(*ring, plan(0, 1)), 1);
  fill(*ring, *open(*ring, plan(1, 1)), 1);
  const auto slot = ring->take(*other, 0);
  ring->release(kOwn, *ring->take(kOwn, 0));
  ring->release(kOwn, *ring->take(kOwn, 1));
  ring->dismiss(*other);
  EXPECT_FALSE(ring->is_attached(*other));
  EXPECT_FALSE(ring->take(*other, 1));
  const auto next = open(*ring, plan(2, 1));
  ASSERT_TRUE(next) << "what it has not taken is free";
  EXPECT_NE(next, slot);
  EXPECT_FALSE(open(*ring, plan(3, 1))) << "what it reads is not";
  ring->release(*other, *slot);
  EXPECT_TRUE(open(*ring, plan(3, 1)));
}

TEST(RingReaderTest, ABatchThatSomebodyKeptIsNoPlaceToBegin) {
  auto ring = make(3, 1);
  const auto other = ring->add_reader();
  for (std::uint64_t number = 0; number < 5; ++number) {
    fill(*ring, *open(*ring, plan(number, 1)), 1);
    const auto slot = ring->take(kOwn, number);
    if (number != 1) ring->release(kOwn, *slot);
  }
  EXPECT_FALSE(ring->attach(*other, 1, false)) << "batch 2 is gone";
  EXPECT_TRUE(ring->attach(*other, 4, false));
}

TEST(RingReaderTest, NobodyComesForABatchThatNeverWill) {
  auto ring = make(2, 1);
  const auto other = ring->add_reader();
  ring->stop();
  ring->reset();
  ring->begin(3, 5);
  EXPECT_TRUE(ring->attach(*other, 4, false));
  EXPECT_FALSE(ring->attach(*other, 5, false));
  EXPECT_FALSE(ring->attach(*other, 9, true));
}

TEST(RingReaderTest, WhoComesNeedsABatchThatIsThereOrNear) {
  auto ring = make(2, 1);
  const auto other = ring->add_reader();
  fill(*ring, *open(*ring, plan(0, 1)), 1);
  ring->release(kOwn, *ring->take(kOwn, 0));
  EXPECT_TRUE(ring->attach(*other, 0, false)) << "its slot is still as it was";
  ring->detach(*other);
  ASSERT_TRUE(open(*ring, plan(1, 1)));
  ASSERT_TRUE(open(*ring, plan(2, 1)));
  EXPECT_FALSE(ring->attach(*other, 0, false));
  EXPECT_FALSE(ring->is_attached(*other));
  EXPECT_TRUE(ring->attach(*other, 1, false));
  EXPECT_TRUE(ring->attach(*other, 5, false));
  EXPECT_FALSE(ring->attach(*other, 6, false)) << "further than the ring is long";
  EXPECT_TRUE(ring->attach(*other, 6, true));
  ring->feed_only_own();
  EXPECT_FALSE(ring->is_attached(*other));
  EXPECT_FALSE(ring->attach(*other, 2, true));
  ring->stop();
  ring->reset();
  ring->begin(9);
  EXPECT_TRUE(ring->attach(*other, 9, false)) << "another run of the feeder";
}

TEST(RingReaderTest, TheDeadReadNothing) {
  auto ring = make(1, 1);
  bool lives = true;
  ring->set_member({1, 1}, nullptr, [&](MemberId) { return lives; });
  WorkSignal signal;
  ring->set_member({1, 1}, &signal, [&](MemberId) { return lives; });
  const auto other = ring->add_reader();
  ASSERT_TRUE(ring->attach(*other, 0, false));
  fill(*ring, *open(*ring, plan(0, 1)), 1);
  ASSERT_TRUE(ring->take(*other, 0));
  ring->release(kOwn, *ring->take(kOwn, 0));
  ring->take_back();
  EXPECT_FALSE(ring->free_slot());
  lives = false;
  ring->take_back();
  EXPECT_TRUE(ring->free_slot());
  EXPECT_EQ(ring->add_reader(), other) << "the place is free";
}

TEST(RingReaderTest, ThePlacesForReadersAreLimited) {
  auto ring = make(1, 1);
  for (unsigned i = 1; i < Ring::kMostReaders; ++i) EXPECT_EQ(ring->add_reader(), i);
  EXPECT_FALSE(ring->add_reader());
  ring->remove_reader(7);
  EXPECT_EQ(ring->add_reader(), 7u);
}

// A learner that works on its batch in place changes it for nobody else, nor the next batch that comes there.
TEST(RingReaderTest, WhatAReaderWritesIsItsOwn) {
  const RingOptions options{.slots = 1, .batch = 2, .sample_bytes = 8};
  const auto memory = *SharedMemory::create(Ring::region_bytes(options), "a test");
  const auto map = [&] { return *Region::map_file(memory.file(), 0, Ring::region_bytes(options), "a test"); };
  auto ring = Ring::create(options, map());
  auto other = Ring::attach(options, map());
  for (auto& one : {ring, other})
    one->set_view(*Region::map_copy(memory.file(), 0, Ring::region_bytes(options), "a test"));
  ring->begin(0);
  const auto reader = other->add_reader();
  ASSERT_TRUE(other->attach(*reader, 0, false));
  for (std::uint64_t n = 0; n < 3; ++n) {
    const auto slot = open(*ring, plan(n, 2));
    ASSERT_TRUE(slot);
    std::ranges::fill(ring->tensors(*slot), std::byte(n + 1));
    fill(*ring, *slot, 2);
    ASSERT_EQ(ring->take(kOwn, n), slot);
    ASSERT_EQ(other->take(*reader, n), slot);
    for (const auto& one : {ring, other}) {
      const auto data = one->data(*slot);
      for (const std::byte value : data) EXPECT_EQ(value, std::byte(n + 1));
      std::memset(const_cast<std::byte*>(data.data()), 0, data.size());
    }
    ring->release(kOwn, *slot);
    other->release(*reader, *slot);
  }
}

TEST(RingReaderTest, WhatOneKeepsWhoWasDismissedIsItsOwnAndTheSlotIsFree) {
  const RingOptions options{.slots = 1, .batch = 2, .sample_bytes = 8192};
  const auto memory = *SharedMemory::create(Ring::region_bytes(options), "a test");
  const auto map = [&] { return *Region::map_file(memory.file(), 0, Ring::region_bytes(options), "a test"); };
  auto ring = Ring::create(options, map());
  auto other = Ring::attach(options, map());
  other->set_view(*Region::map_copy(memory.file(), 0, Ring::region_bytes(options), "a test"));
  ring->begin(0);
  const auto reader = other->add_reader();
  ASSERT_TRUE(other->attach(*reader, 0, false));
  const auto slot = open(*ring, plan(0, 2));
  std::ranges::fill(ring->tensors(*slot), std::byte(1));
  fill(*ring, *slot, 2);
  ASSERT_EQ(other->take(*reader, 0), slot);
  ring->release(kOwn, *ring->take(kOwn, 0));
  ring->dismiss(*reader);
  EXPECT_FALSE(ring->free_slot());
  const auto data = other->data(*slot);
  EXPECT_EQ(other->keep(*reader), 1u);
  ASSERT_EQ(open(*ring, plan(1, 2)), slot);
  std::ranges::fill(ring->tensors(*slot), std::byte(2));
  for (const std::byte value : data) EXPECT_EQ(value, std::byte(1));
  other->forget(*slot);
  EXPECT_EQ(data[0], std::byte(2));
}

}  // namespace
}  // namespace foreload
