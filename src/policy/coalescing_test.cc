#include "policy/coalescing.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace foreload {
namespace {

std::vector<std::uint64_t> tags(const std::vector<WantedRange>& ranges) {
  std::vector<std::uint64_t> found;
  for (const WantedRange& range : ranges) found.push_back(range.tag);
  return found;
}

using Tags = std::vector<std::uint64_t>;

TEST(CoalescingTest, NeighboursOfTheOldestGoWithItInTheOrderOfTheirOffsets) {
  Coalescer waiting;
  waiting.add({.tag = 1, .object = 7, .offset = 300000, .length = 100000});
  waiting.add({.tag = 2, .object = 7, .offset = 401024, .length = 100000});
  waiting.add({.tag = 3, .object = 7, .offset = 199000, .length = 100000});
  waiting.add({.tag = 4, .object = 8, .offset = 501024, .length = 100000});  // next to 2, but elsewhere
  EXPECT_EQ(tags(waiting.take()), (Tags{3, 1, 2}));
  EXPECT_EQ(tags(waiting.take()), Tags{4});
  EXPECT_TRUE(waiting.is_empty());
  EXPECT_TRUE(waiting.take().empty());
}

TEST(CoalescingTest, TheOldestGoesFirstWhateverHasMoreNeighbours) {
  Coalescer waiting;
  waiting.add({.tag = 1, .object = 1, .offset = 10'000'000, .length = 1000});
  for (std::uint64_t i = 0; i < 5; ++i) waiting.add({.tag = 10 + i, .object = 1, .offset = i * 1000, .length = 1000});
  EXPECT_EQ(tags(waiting.take()), Tags{1});
  EXPECT_EQ(tags(waiting.take()), (Tags{10, 11, 12, 13, 14}));
}

TEST(CoalescingTest, ARequestForSeveralIsBoundedButALongerSingleOneIsNot) {
  Coalescer waiting({.longest = 1000});
  for (std::uint64_t i = 0; i < 5; ++i) waiting.add({.tag = i, .object = 1, .offset = i * 400, .length = 400});
  waiting.add({.tag = 9, .object = 2, .offset = 0, .length = 100'000});
  EXPECT_EQ(tags(waiting.take()), (Tags{0, 1}));
  EXPECT_EQ(tags(waiting.take()), (Tags{2, 3}));
  EXPECT_EQ(tags(waiting.take()), Tags{4});
  EXPECT_EQ(tags(waiting.take()), Tags{9});
}

TEST(CoalescingTest, LargeGapsAreBridgedOnlyWhileTheyAreASmallShare) {
  Coalescer waiting;
  waiting.add({.tag = 1, .object = 1, .offset = 0, .length = 200'000});
  waiting.add({.tag = 2, .object = 1, .offset = 220'000, .length = 200'000});  // 20,000 of 400,000
  waiting.add({.tag = 3, .object = 1, .offset = 440'000, .length = 10'000});   // 40,000 of 410,000
  EXPECT_EQ(tags(waiting.take()), (Tags{1, 2}));
  EXPECT_EQ(tags(waiting.take()), Tags{3});
}

TEST(CoalescingTest, OverlappingAndEqualRangesAreNeverTogether) {
  Coalescer waiting;
  waiting.add({.tag = 1, .object = 1, .offset = 100, .length = 100});
  waiting.add({.tag = 2, .object = 1, .offset = 150, .length = 100});
  waiting.add({.tag = 3, .object = 1, .offset = 100, .length = 100});
  EXPECT_EQ(tags(waiting.take()), Tags{1});
  EXPECT_EQ(tags(waiting.take()), Tags{2});
  EXPECT_EQ(tags(waiting.take()), Tags{3});
}

TEST(CoalescingTest, WhateverWaitsIsTakenExactlyOnceWithinTheBounds) {
  KeyedRandom random(20, 0, 0, 0);
  for (int turn = 0; turn < 200; ++turn) {
    Coalescer waiting;
    const std::uint64_t count = 1 + random.below(60);
    for (std::uint64_t tag = 0; tag < count; ++tag) {
      waiting.add({.tag = tag,
                   .object = random.below(3),
                   .offset = random.below(4'000'000),
                   .length = 1 + random.below(300'000)});
    }
    std::set<std::uint64_t> seen;
    while (!waiting.is_empty()) {
      const std::uint64_t left = waiting.size();
      const auto group = waiting.take();
      ASSERT_FALSE(group.empty());
      EXPECT_EQ(waiting.size(), left - group.size());
      for (std::size_t i = 0; i < group.size(); ++i) {
        EXPECT_TRUE(seen.insert(group[i].tag).second);
        EXPECT_EQ(group[i].object, group[0].object);
        if (i > 0) {
          ASSERT_GE(group[i].offset, group[i - 1].offset + group[i - 1].length) << "turn " << turn;
        }
      }
      if (group.size() > 1) {
        EXPECT_LE(group.back().offset + group.back().length - group.front().offset, 2_MiB);
      }
    }
    EXPECT_EQ(seen.size(), count);
  }
}

TEST(CoalescerTest, ThePatientWaitForRangesThatFollowOneAnother) {
  Coalescer coalescer;
  constexpr Bytes kSample = 110'000;  // 19 fit into a request
  std::uint64_t tag = 0;
  const auto add = [&] {
    coalescer.add({.tag = tag, .object = 1, .offset = tag * kSample, .length = kSample});
    ++tag;
  };
  while (tag < 4) add();
  EXPECT_TRUE(coalescer.take(true).empty()) << "more may come";
  while (tag < 18) add();
  EXPECT_TRUE(coalescer.take(true).empty());
  add();
  EXPECT_EQ(coalescer.take(true).size(), 19u) << "it is full";
  add();
  EXPECT_TRUE(coalescer.take(true).empty()) << "one that follows what was taken";
  EXPECT_EQ(coalescer.take(false).size(), 1u) << "whoever can not wait gets it";
}

TEST(CoalescerTest, RangesAnywhereAreNotWaitedFor) {
  Coalescer coalescer;
  for (std::uint64_t tag = 0; tag < 50; ++tag) {
    coalescer.add({.tag = tag, .object = tag % 5, .offset = (tag * 7919 % 50) * 1'000'000, .length = 110'000});
  }
  for (int i = 0; i < 50; ++i) EXPECT_EQ(coalescer.take(true).size(), 1u);
  EXPECT_TRUE(coalescer.is_empty());
}

}  // namespace
}  // namespace foreload
