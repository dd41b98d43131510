#include "tier/disk_board.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <random>
#include <set>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/test_folder.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSamples = 100;
constexpr std::uint32_t kSeats = 3;
constexpr MemberId kFirst{.index = 1, .generation = 1};
constexpr MemberId kSecond{.index = 2, .generation = 1};

// Ids below 90 are at home on the disks, by turns.
class DiskBoardTest : public testing::Test {
 protected:
  DiskBoardTest() : memory_(DiskBoard::region_bytes(kSamples, kSeats) / sizeof(std::uint64_t)) {
    DiskBoard::format(bytes(), kSamples, kSeats, now(), [](SampleId id) {
      return id < 90 ? std::optional(static_cast<DiskBoard::Seat>(id % kSeats)) : std::nullopt;
    });
  }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(memory_)); }
  DiskBoard open() {
    auto board = DiskBoard::open(bytes(), [this](MemberId id) { return dead_.count(id.index) == 0; });
    EXPECT_TRUE(board.ok());
    return std::move(*board);
  }

  std::vector<std::uint64_t> memory_;
  std::set<int> dead_;
};

TEST_F(DiskBoardTest, EverySampleHasTheHomeThatItWasGiven) {
  const DiskBoard board = open();
  EXPECT_EQ(board.samples(), kSamples);
  EXPECT_EQ(board.seats(), kSeats);
  EXPECT_EQ(board.home(4), std::optional(1u));
  EXPECT_EQ(board.home(95), std::nullopt);
  EXPECT_EQ(board.find(4), std::nullopt);
}

TEST_F(DiskBoardTest, WhatALearnerHasIsFoundUntilItIsGone) {
  DiskBoard board = open();
  ASSERT_TRUE(board.sit(1, kFirst, "/somewhere"));
  const DiskBoard::Place place{.seat = 1, .offset = (Bytes{1} << 48) - 1, .hash = 77};
  board.add(4, place);
  board.add(95, {.seat = 1, .offset = 0, .hash = 78});
  EXPECT_EQ(open().find(4), std::optional(place));
  EXPECT_EQ(open().home(4), std::optional(1u));
  board.remove(4, 2);
  EXPECT_EQ(board.find(4), std::optional(place)) << "that is another's";
  board.remove(4, 1);
  EXPECT_EQ(board.find(4), std::nullopt);
  EXPECT_EQ(board.home(4), std::optional(1u));
  board.add(5, {.seat = 1, .offset = Bytes{1} << 48});
  EXPECT_EQ(board.find(5), std::nullopt) << "too far away to be told";
  ASSERT_TRUE(board.sit(1, kSecond, "/elsewhere"));
  EXPECT_EQ(board.find(95), std::nullopt) << "who sits down begins anew";
}

TEST_F(DiskBoardTest, OnlyWhoTakesIsAskedAndOnlyForWhatIsAtHomeThere) {
  DiskBoard board = open();
  const Time time = now();
  EXPECT_TRUE(board.want(4, time)) << "somebody may sit down soon";
  EXPECT_FALSE(board.want(4, time + 60s)) << "nobody did";
  ASSERT_TRUE(board.sit(1, kFirst, "/somewhere"));
  EXPECT_TRUE(board.want(4, time));
  EXPECT_TRUE(board.want(4, time));
  EXPECT_TRUE(board.want(7, time));
  EXPECT_FALSE(board.want(95, time)) << "at home on no disk";
  EXPECT_FALSE(board.has_wanted(0));
  EXPECT_EQ(board.take_wanted(0), std::nullopt);
  EXPECT_EQ(board.take_wanted(1), std::optional<SampleId>(4));
  EXPECT_EQ(board.take_wanted(1), std::optional<SampleId>(7)) << "each once";
  EXPECT_EQ(board.take_wanted(1), std::nullopt);
  EXPECT_FALSE(board.has_wanted(1));
  board.stop_taking(1);
  EXPECT_FALSE(board.want(4, time));
  ASSERT_TRUE(board.sit(2, kSecond, ""));
  EXPECT_FALSE(board.want(5, time)) << "it has no disk";
  ASSERT_TRUE(board.sit(1, kFirst, "/somewhere"));
  EXPECT_TRUE(board.want(4, time));
  dead_.insert(kFirst.index);
  EXPECT_FALSE(board.want(4, time));
}

TEST_F(DiskBoardTest, AFullListLosesNothingForGood) {
  DiskBoard board = open();
  ASSERT_TRUE(board.sit(0, kFirst, "/somewhere"));
  for (int turn = 0; turn < 100; ++turn) {
    for (SampleId id = 0; id < 90; id += kSeats) EXPECT_TRUE(board.want(id, now()));
    std::set<SampleId> taken;
    while (const auto id = board.take_wanted(0)) taken.insert(*id);
    EXPECT_EQ(taken.size(), 30u);
  }
}

TEST_F(DiskBoardTest, WhoeverHasNoCacheDoesNotTakeTheSeatOfOneThatHas) {
  DiskBoard board = open();
  ASSERT_TRUE(board.sit(1, kFirst, "/somewhere"));
  EXPECT_FALSE(board.sit(1, kSecond, ""));
  dead_.insert(kFirst.index);
  EXPECT_TRUE(board.sit(1, kSecond, ""));
  std::uint32_t life = 0;
  EXPECT_EQ(board.folder(1, life), "");
}

TEST_F(DiskBoardTest, ADoubtIsForTheOneWhoHasItAndForThatPlaceOnly) {
  DiskBoard board = open();
  ASSERT_TRUE(board.sit(1, kFirst, "/somewhere"));
  const DiskBoard::Place before{.seat = 1, .offset = 10, .hash = 5};
  board.add(4, before);
  board.add(4, {.seat = 1, .offset = 20, .hash = 5});
  board.doubt(4, before);
  EXPECT_TRUE(board.find(4)) << "it is elsewhere by now";
  EXPECT_FALSE(board.has_wanted(1));
  board.doubt(4, *board.find(4));
  EXPECT_FALSE(board.find(4));
  EXPECT_EQ(board.take_wanted(1), std::optional<SampleId>(4));
  board.doubt(4, {.seat = 200, .offset = 20});  // whatever stands there
}

TEST_F(DiskBoardTest, FilesAreOpenedOncePerLife) {
  TestFolder folder;
  folder.write("a/data", "one");
  folder.write("b/data", "other");
  DiskBoard board = open();
  DiskBoardFiles files;
  EXPECT_EQ(files.file(board, 0), nullptr);
  ASSERT_TRUE(board.sit(0, kFirst, folder.path("a")));
  const auto first = files.file(board, 0);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(files.file(board, 0), first);
  ASSERT_TRUE(board.sit(0, kSecond, folder.path("b")));
  const auto other = files.file(board, 0);
  ASSERT_NE(other, nullptr);
  EXPECT_NE(other, first);
  std::vector<std::byte> text(5);
  EXPECT_TRUE(read_exactly(other->get(), 0, text).ok());
  EXPECT_EQ(text[1], std::byte{'t'});
  ASSERT_TRUE(board.sit(0, kFirst, folder.path("missing")));
  EXPECT_EQ(files.file(board, 0), nullptr);
  ASSERT_TRUE(board.sit(0, kFirst, std::string(5000, 'x')));
  EXPECT_EQ(files.file(board, 0), nullptr) << "a path that is too long is none";
  EXPECT_FALSE(board.want(0, now()));
}

TEST_F(DiskBoardTest, WhateverStandsInTheMemoryNothingBeyondItIsUsed) {
  std::mt19937_64 random(1);
  for (int turn = 0; turn < 300; ++turn) {
    DiskBoard board = open();
    for (std::size_t i = 512; i < memory_.size(); ++i) memory_[i] = random();
    for (SampleId id = 0; id < kSamples; ++id) {
      const auto place = board.find(id);
      EXPECT_TRUE(!place || place->seat < kSeats);
      EXPECT_LT(board.home(id).value_or(0), kSeats);
      (void)board.want(id, now());
      if (place) board.doubt(id, *place);
    }
    for (DiskBoard::Seat seat = 0; seat < kSeats; ++seat) {
      for (int i = 0; i < 600; ++i) EXPECT_LT(board.take_wanted(seat).value_or(0), kSamples);
      std::uint32_t life = 0;
      EXPECT_LT(board.folder(seat, life).size(), 1024u);
    }
  }
  for (int turn = 0; turn < 3000; ++turn) {
    memory_[random() % 4] = random() % 2 == 0 ? random() : random() % 1000;
    (void)DiskBoard::open(bytes(), nullptr).ok();
  }
  EXPECT_FALSE(DiskBoard::open(bytes().first(100), nullptr).ok());
}

TEST_F(DiskBoardTest, ManyMayUseItAtOnce) {
  DiskBoard board = open();
  ASSERT_TRUE(board.sit(0, kFirst, "/a"));
  std::vector<std::thread> threads;
  for (unsigned worker = 0; worker < 4; ++worker) {
    threads.emplace_back([&, worker] {
      std::mt19937_64 random(worker);
      for (int i = 0; i < 20'000; ++i) {
        const SampleId id = random() % kSamples;
        if (random() % 4 == 0) board.add(id, {.seat = worker % kSeats, .offset = id, .hash = id});
        if (random() % 4 == 0) board.remove(id, worker % kSeats);
        const auto place = board.find(id);
        EXPECT_TRUE(!place || place->offset == id);
        (void)board.want(id, now());
        (void)board.take_wanted(0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (SampleId id = 0; id < kSamples; ++id) EXPECT_EQ(board.home(id).has_value(), id < 90);
}

}  // namespace
}  // namespace foreload
