#include "peers/mpi_directory.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

constexpr std::uint64_t kSamples = 1000;
const PeerKey kKey{.fingerprint = 1, .validators = 2, .roster = 3};

MpiNote note(std::uint64_t serial, Bytes homes = 1_MiB) {
  return {.kind = MpiNote::kExposed,
          .serial = serial,
          .key = kKey,
          .address = 4096,
          .bytes = SharedArena::table_bytes(kSamples) + homes,
          .samples = kSamples};
}

SlotCopy resident(Bytes offset) {
  return {.word = ClaimWord{.phase = 2, .generation = 1}.packed(), .offset = offset, .hash = 5};
}

TEST(MpiDirectoryTest, AHostHasWhatItSaidAndForThatKeyOnly) {
  MpiDirectory directory(2);
  EXPECT_EQ(directory.acquire(1, kKey), nullptr);
  directory.exposed(1, note(1));
  EXPECT_EQ(directory.acquire(0, kKey), nullptr);
  ASSERT_NE(directory.acquire(1, kKey), nullptr);
  PeerKey other = kKey;
  other.roster = 4;
  EXPECT_EQ(directory.acquire(1, other), nullptr);
}

TEST(MpiDirectoryTest, WhatLeavesIsGoneWithItsLastReader) {
  MpiDirectory directory(1);
  directory.exposed(0, note(1));
  MpiDirectory::Arena* const first = directory.acquire(0, kKey);
  ASSERT_EQ(directory.acquire(0, kKey), first);
  EXPECT_FALSE(directory.leaving(0, 1));
  EXPECT_EQ(directory.acquire(0, kKey), nullptr) << "nobody begins to read it";
  directory.exposed(0, note(2));
  MpiDirectory::Arena* const second = directory.acquire(0, kKey);
  EXPECT_NE(second, first);
  EXPECT_FALSE(directory.release(0, first));
  EXPECT_TRUE(directory.release(0, first));
  EXPECT_FALSE(directory.release(0, second)) << "it stays";
  EXPECT_TRUE(directory.leaving(0, 2)) << "nobody reads it";
  EXPECT_TRUE(directory.leaving(0, 7)) << "there never was one";
}

TEST(MpiDirectoryTest, SlotsAreBoundedByWhatIsExposed) {
  MpiDirectory directory(1);
  directory.exposed(0, note(1));
  const MpiDirectory::Arena& arena = *directory.acquire(0, kKey);
  EXPECT_TRUE(arena.has_slot(kSamples - 1));
  EXPECT_FALSE(arena.has_slot(kSamples));
  EXPECT_FALSE(arena.has_slot(~SampleId{0}));
  const Bytes table = SharedArena::table_bytes(kSamples);
  EXPECT_EQ(arena.judge(resident(table), 1_MiB), PeerResult::kHere);
  EXPECT_EQ(arena.judge(resident(table), 1_MiB + 1), PeerResult::kAbsent) << "behind what is exposed";
  EXPECT_EQ(arena.judge(resident(~Bytes{0}), 2), PeerResult::kAbsent);
  EXPECT_EQ(arena.judge(resident(table - 1), 1), PeerResult::kWrong) << "that is the table";
  EXPECT_EQ(arena.judge({.offset = table}, 1), PeerResult::kAbsent) << "not resident";
}

TEST(MpiDirectoryTest, ATableThatDoesNotFitItsMemoryIsNoArena) {
  MpiDirectory directory(1);
  MpiNote wrong = note(1);
  wrong.samples = ~std::uint64_t{0};
  directory.exposed(0, wrong);
  EXPECT_EQ(directory.acquire(0, kKey), nullptr);
}

}  // namespace
}  // namespace foreload
