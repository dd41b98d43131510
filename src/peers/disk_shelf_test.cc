// What an agent gives other hosts from the disks of its learners, who are played by the test: a real host with its
// board and arena, and a real cache on disk.
#include "peers/disk_shelf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/hash.h"
#include "base/test_folder.h"
#include "host/host_testing.h"
#include "peers/arena_shelf.h"
#include "tier/disk_seat.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;
using Kind = PeerShelf::Taken::Kind;

constexpr Bytes kLength = 3000;
constexpr PeerKey kKey{.fingerprint = 11, .validators = 12, .roster = 13};

std::vector<std::byte> content_of(SampleId id) {
  return std::vector<std::byte>(kLength, static_cast<std::byte>('a' + id % 26));
}

// Even ids are at home on the disk of the one learner.
class DiskShelfTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kSamples = 50;

  DiskShelfTest() : member_(*Member::join(fresh_host(), {.budget = 256_MiB, .at_step = nullptr})) {
    open_arena();
    open_board();
    store_ = std::move(*DiskStore::open({.folder = folder_.path("cache"),
                                         .samples = {.count = kSamples,
                                                     .fingerprint = 11,
                                                     .length = [](SampleId) { return kLength; },
                                                     .stamp =
                                                         [](SampleId) {
                                                           return FileStamp{kLength, 5};
                                                         }},
                                         .total_bytes = kSamples * kLength}));
    seat_.emplace(std::move(*DiskBoard::open(board_->memory().bytes(), [](MemberId) { return true; })), 0u);
    seat_->sit(member_->id(), store_.get());
    inventory_ = std::move(*Inventory::open(member_));
    const Time end = now() + 20s;
    while (now() < end && (inventory_->lists()->disks.empty() || inventory_->lists()->arenas.empty())) {
      std::this_thread::sleep_for(1ms);
    }
  }
  ~DiskShelfTest() override {
    store_.reset();
    inventory_.reset();
  }

  void open_arena() {  // without homes
    const SharedArenaOptions options{.samples = kSamples};
    const Bytes bytes = SharedArena::region_bytes(options);
    const auto fill = [&](const SharedMemory& memory) {
      SharedArena::format(
          memory.bytes(), options, [] { return std::optional<SampleId>(); }, [](SampleId) { return kLength; });
      return Status();
    };
    arena_ = *member_->open({.key = arena_key(kKey), .bytes = bytes, .reserve = bytes, .fill = fill});
  }
  void open_board() {
    const Bytes bytes = DiskBoard::region_bytes(kSamples, 1);
    const auto fill = [&](const SharedMemory& memory) {
      DiskBoard::format(memory.bytes(), kSamples, 1, now() - 60s,
                        [](SampleId id) { return id % 2 == 0 ? std::optional<DiskBoard::Seat>(0) : std::nullopt; });
      return Status();
    };
    board_ = *member_->open({.key = disks_key(kKey), .bytes = bytes, .reserve = bytes, .fill = fill});
  }
  void write(SampleId id) { EXPECT_TRUE(*store_->write(id, content_of(id))); }
  std::shared_ptr<ShelvedDisks> disks() const { return inventory_->lists()->disks.at(0); }
  // As a call does: again, while it is late.
  static PeerShelf::Taken take(PeerShelf& shelf, SampleId id, Duration patience = 20s) {
    const Time end = now() + patience;
    for (;;) {
      PeerShelf::Taken taken = shelf.take(kKey, {.id = id, .length = kLength});
      if (taken.kind != Kind::kLater || now() >= end) return taken;
      std::this_thread::sleep_for(1ms);
    }
  }
  static void expect_right(const PeerShelf::Taken& taken, SampleId id) {
    ASSERT_EQ(taken.kind, Kind::kHere) << id;
    EXPECT_TRUE(std::ranges::equal(taken.lease.bytes(), content_of(id)));
    EXPECT_EQ(taken.hash, hash_bytes(taken.lease.bytes()));
  }

  TestFolder folder_;
  std::shared_ptr<Member> member_;
  std::shared_ptr<SharedObject> arena_;
  std::shared_ptr<SharedObject> board_;
  std::unique_ptr<DiskStore> store_;
  std::optional<DiskSeat> seat_;
  std::unique_ptr<Inventory> inventory_;
};

TEST_F(DiskShelfTest, WhatADiskHasIsGiven) {
  const auto disks = std::move(*DiskShelf::open(10 * kLength));
  ArenaShelf shelf(*inventory_, disks.get());
  for (SampleId id = 0; id < kSamples; id += 2) write(id);
  std::vector<PeerItem> items;
  for (SampleId id = 0; id < kSamples; ++id) items.push_back({.id = id, .length = kLength});
  items.push_back({.id = ~0ull, .length = kLength});
  shelf.expect(kKey, items);
  for (SampleId id = 0; id < kSamples; id += 2) expect_right(take(shelf, id), id);
  EXPECT_EQ(take(shelf, 7).kind, Kind::kAbsent) << "at home on no disk here";
  EXPECT_EQ(take(shelf, ~0ull).kind, Kind::kAbsent);
  ArenaShelf without(*inventory_);
  EXPECT_EQ(take(without, 4).kind, Kind::kAbsent);
}

TEST_F(DiskShelfTest, WhatIsNotThereYetIsWantedOfItsLearner) {
  const auto disks = std::move(*DiskShelf::open(10 * kLength));
  ArenaShelf shelf(*inventory_, disks.get());
  EXPECT_EQ(take(shelf, 4, 0s).kind, Kind::kLater);
  EXPECT_EQ(seat_->take_wanted(), std::optional<SampleId>(4));
  write(4);
  expect_right(take(shelf, 4), 4);
  seat_->stop_taking();
  EXPECT_EQ(take(shelf, 6).kind, Kind::kAbsent);
}

TEST_F(DiskShelfTest, DamagedBytesAreNotGivenAndTheirLearnerIsTold) {
  const auto disks = std::move(*DiskShelf::open(10 * kLength));
  ArenaShelf shelf(*inventory_, disks.get());
  write(4);
  write(6);
  {
    std::fstream data(store_->path() + "/data", std::ios::in | std::ios::out | std::ios::binary);
    data.seekp(100);
    data.put('!');
  }
  EXPECT_NE(take(shelf, 4, 200ms).kind, Kind::kHere);
  EXPECT_EQ(seat_->take_wanted(), std::optional<SampleId>(4));
  expect_right(take(shelf, 6), 6);
  std::filesystem::resize_file(store_->path() + "/data", kLength / 2);
  EXPECT_NE(take(shelf, 6, 200ms).kind, Kind::kHere) << "the file has become shorter";
}

TEST_F(DiskShelfTest, AWrongLengthGetsNothing) {
  const auto disks = std::move(*DiskShelf::open(10 * kLength));
  ArenaShelf shelf(*inventory_, disks.get());
  write(4);
  for (const Bytes length : {Bytes{0}, kLength - 1, kLength + 1, Bytes{1} << 40, ~Bytes{0}}) {
    for (int i = 0; i < 20; ++i) {
      EXPECT_NE(shelf.take(kKey, {.id = 4, .length = length}).kind, Kind::kHere);
      std::this_thread::sleep_for(1ms);
    }
  }
}

TEST_F(DiskShelfTest, MemoryIsBoundedAndWhatWaitsForItIsLate) {
  const auto disks = std::move(*DiskShelf::open(2 * kLength));
  ArenaShelf shelf(*inventory_, disks.get());
  for (SampleId id = 0; id < 8; id += 2) write(id);
  auto first = take(shelf, 0);
  auto second = take(shelf, 2);
  expect_right(first, 0);
  expect_right(second, 2);
  const Lease other = second.lease.share();
  EXPECT_EQ(take(shelf, 4, 100ms).kind, Kind::kLater);
  second = {};
  EXPECT_EQ(take(shelf, 4, 100ms).kind, Kind::kLater) << "somebody still has it";
  first = {};
  expect_right(take(shelf, 4), 4);
}

TEST_F(DiskShelfTest, WhatIsLongerThanAllMemoryIsAbsentAndNotLate) {
  const auto disks = std::move(*DiskShelf::open(kLength - 1));
  ArenaShelf shelf(*inventory_, disks.get());
  write(4);
  EXPECT_EQ(disks->take(this->disks(), {.id = 4, .length = kLength}).kind, Kind::kAbsent);
  EXPECT_EQ(take(shelf, 4, 0s).kind, Kind::kAbsent);
  EXPECT_EQ(take(shelf, 6, 0s).kind, Kind::kAbsent) << "nor is it wanted of its learner";
  EXPECT_EQ(seat_->take_wanted(), std::nullopt);
}

TEST_F(DiskShelfTest, WhatNobodyTakesMakesRoom) {
  const auto disks = std::move(*DiskShelf::open(2 * kLength));
  ArenaShelf shelf(*inventory_, disks.get());
  for (SampleId id = 0; id < 8; id += 2) write(id);
  for (SampleId id = 0; id < 4; id += 2) disks->expect(this->disks(), {.id = id, .length = kLength});
  expect_right(take(shelf, 4), 4);
}

TEST_F(DiskShelfTest, LeasesOutliveTheShelf) {
  auto disks = std::move(*DiskShelf::open(10 * kLength));
  write(4);
  PeerShelf::Taken taken;
  {
    ArenaShelf shelf(*inventory_, disks.get());
    taken = take(shelf, 4);
    for (SampleId id = 0; id < 10; id += 2) disks->expect(this->disks(), {.id = id, .length = kLength});
  }
  disks.reset();
  expect_right(taken, 4);
}

}  // namespace
}  // namespace foreload
