// A tier stack whose samples are at home on another host: what an agent brings, does not have, or never answers for.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/clock.h"
#include "base/test_folder.h"
#include "tier/tier_stack.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Bytes kLength = 5000;
constexpr MemberId kAgent{.index = 1, .generation = 1};

// Samples with even ids are at home on host 7, whose copies are in capitals.
class PeersTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kSamples = 20;

  PeersTest() : memory_(PeerDesk::region_bytes(4 * 5056) / sizeof(Line)) {
    for (std::uint64_t id = 0; id < kSamples; ++id) {
      folder_.write("s" + std::to_string(100 + id) + ".bin", std::string(kLength, static_cast<char>('a' + id)));
    }
    source_ = std::move(*open_source({.datasets = {folder_.path()}}));
    arena_ = std::move(*Arena::create({.samples = kSamples, .transit = kSamples * Arena::footprint(kLength)}));
    auto bottom = std::make_unique<SourceTier>(*source_, std::move(*open_read_engine({})), std::nullopt);
    tiers_ = std::make_unique<TierStack>(*source_, std::make_unique<KeptHomes>(nothing_), *arena_, std::move(bottom));
    desk_.begin([this](MemberId) { return alive_.load(); });
    tiers_->use_peers({.desk = &desk_,
                       .home = [](SampleId id) { return id % 2 == 0 ? std::optional(7u) : std::nullopt; },
                       .is_kept_here = [](SampleId) { return false; },
                       .asked = [] {}});
  }

  Ask ask(SampleId id) { return tiers_->request({.id = id, .from = tiers_->nearest(id)}, now()).kind; }
  void start() {
    for (const Origin origin : {Origin::kPeer, Origin::kSource}) {
      while (tiers_->start_next(origin, now())) {
      }
    }
  }
  Arrival wait_one() {
    std::vector<Arrival> arrivals;
    const Time end = now() + 20s;
    while (arrivals.empty() && now() < end) {
      tiers_->wait(arrivals, now() + 10ms);
      start();
    }
    EXPECT_EQ(arrivals.size(), 1u);
    return arrivals.empty() ? Arrival{} : std::move(arrivals[0]);
  }
  void answer(bool here, Bytes cut = 0) {
    const auto asked = agent_.claim(kAgent);
    ASSERT_TRUE(asked);
    EXPECT_EQ(asked->host, 7u);
    std::ranges::fill(asked->into, static_cast<std::byte>('A' + asked->id));
    agent_.end(*asked, here, cut);
    tiers_->wake();
  }
  // Only a crop of it is needed, of which 2,000 bytes are expected.
  Ask ask_crop(SampleId id) {
    const PartialRead part{.crop = {.picture_width = 9, .picture_height = 9, .width = 5, .height = 5},
                           .expected = 2000};
    return tiers_->request({.id = id, .from = Origin::kPeer, .part = part}, now()).kind;
  }

  struct alignas(64) Line {
    std::array<std::byte, 64> bytes{};
  };
  TestFolder folder_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<Arena> arena_;
  Placement nothing_;
  std::vector<Line> memory_;
  std::atomic<bool> alive_{true};
  PeerDesk desk_{std::as_writable_bytes(std::span(memory_))};
  PeerDesk agent_{std::as_writable_bytes(std::span(memory_))};
  std::unique_ptr<TierStack> tiers_;
};

TEST_F(PeersTest, WhatIsAtHomeElsewhereComesFromThere) {
  EXPECT_EQ(tiers_->whereabouts(4), Origin::kPeer);
  EXPECT_EQ(tiers_->whereabouts(5), Origin::kSource);
  EXPECT_EQ(ask(4), Ask::kQueued);
  start();
  EXPECT_EQ(tiers_->in_flight(Origin::kPeer), 1u);
  EXPECT_EQ(ask(4), Ask::kJoined);
  answer(true);
  const Arrival came = wait_one();
  ASSERT_TRUE(came.status.ok());
  EXPECT_EQ(came.origin, Origin::kPeer);
  EXPECT_EQ(came.lease.bytes().size(), kLength);
  EXPECT_TRUE(std::ranges::all_of(came.lease.bytes(), [](std::byte b) { return b == std::byte{'E'}; }));
  EXPECT_EQ(tiers_->in_flight(Origin::kPeer), 0u);
}

TEST_F(PeersTest, WhatAPeerDoesNotHaveComesFromTheSource) {
  EXPECT_EQ(ask(4), Ask::kQueued);
  start();
  answer(false);
  const Arrival came = wait_one();
  ASSERT_TRUE(came.status.ok());
  EXPECT_EQ(came.origin, Origin::kSource);
  EXPECT_EQ(came.asked, Origin::kPeer);
  EXPECT_EQ(came.lease.bytes()[0], std::byte{'e'});
}

TEST_F(PeersTest, ACropComesAloneAndServesOnlyWhoAskedForIt) {
  EXPECT_EQ(ask_crop(4), Ask::kQueued);
  start();
  EXPECT_EQ(ask(4), Ask::kNoRoom) << "others wait for all of it";
  answer(true, 1700);
  Arrival came = wait_one();
  ASSERT_TRUE(came.status.ok() && came.part);
  EXPECT_EQ(came.origin, Origin::kPeer);
  EXPECT_EQ(came.length, 2000u) << "as it was asked for";
  EXPECT_EQ(came.came(), 1700u);
  EXPECT_TRUE(std::ranges::all_of(came.lease.bytes().first(1700), [](std::byte b) { return b == std::byte{'E'}; }));
  EXPECT_EQ(ask(4), Ask::kNoRoom);
  // What can not be prepared from the part is read from the source, in its place.
  ASSERT_TRUE(tiers_->complete(4, came.lease, now()));
  const Arrival all = wait_one();
  EXPECT_FALSE(all.part);
  EXPECT_EQ(all.origin, Origin::kSource);
  EXPECT_TRUE(std::ranges::all_of(all.lease.bytes(), [](std::byte b) { return b == std::byte{'e'}; }));
  EXPECT_EQ(ask(4), Ask::kHit);
}

TEST_F(PeersTest, APeerThatCanNotCutItSendsAllOfItForEverybody) {
  EXPECT_EQ(ask_crop(4), Ask::kQueued);
  start();
  answer(true);
  const Arrival came = wait_one();
  EXPECT_FALSE(came.part);
  EXPECT_EQ(came.came(), kLength);
  EXPECT_EQ(came.lease.bytes().size(), kLength);
  EXPECT_EQ(ask(4), Ask::kHit);
}

TEST_F(PeersTest, ACropThatAPeerDoesNotHaveIsReadWholeFromTheSource) {
  EXPECT_EQ(ask_crop(4), Ask::kQueued);
  start();
  answer(false);
  const Arrival came = wait_one();
  EXPECT_FALSE(came.part);
  EXPECT_EQ(std::pair(came.origin, came.came()), std::pair(Origin::kSource, kLength));
  EXPECT_TRUE(std::ranges::all_of(came.lease.bytes(), [](std::byte b) { return b == std::byte{'e'}; }));
  EXPECT_EQ(ask(4), Ask::kHit);
}

TEST_F(PeersTest, ACutOfNoRightLengthIsNoAnswer) {
  EXPECT_EQ(ask_crop(4), Ask::kQueued);
  start();
  answer(true, kLength + 1);
  EXPECT_EQ(wait_one().origin, Origin::kSource);
}

TEST_F(PeersTest, AnAgentThatNeverAnswersCostsItsPatience) {
  EXPECT_EQ(ask(4), Ask::kQueued);
  const Time asked = now();
  start();
  const Arrival came = wait_one();
  EXPECT_GE(now() - asked, PeerDesk::kPatience);
  EXPECT_EQ(came.origin, Origin::kSource);
}

TEST_F(PeersTest, AnAgentThatDiesCostsNothing) {
  EXPECT_EQ(ask(4), Ask::kQueued);
  start();
  ASSERT_TRUE(agent_.claim(kAgent));
  alive_ = false;
  EXPECT_EQ(wait_one().origin, Origin::kSource);
}

TEST_F(PeersTest, AnAgentThatStandsStillWithAllRoomInHandIsNotWaitedFor) {
  for (SampleId id = 0; id < 8; id += 2) EXPECT_EQ(ask(id), Ask::kQueued);
  start();
  while (agent_.claim(kAgent)) {
  }
  for (int i = 0; i < 4; ++i) {
    std::vector<Arrival> arrivals;
    while (arrivals.empty()) {
      tiers_->wait(arrivals, now() + 10ms);
      start();
    }
    i += static_cast<int>(arrivals.size()) - 1;
    for (const Arrival& came : arrivals) EXPECT_EQ(came.origin, Origin::kSource);
  }
  EXPECT_FALSE(desk_.has_room(kLength));
  EXPECT_EQ(ask(10), Ask::kQueued);
  start();
  EXPECT_EQ(tiers_->in_flight(Origin::kPeer), 0u);
  EXPECT_EQ(wait_one().origin, Origin::kSource);
}

TEST_F(PeersTest, MoreIsAskedForWhenThereIsRoomAgain) {
  for (SampleId id = 0; id < 14; id += 2) EXPECT_EQ(ask(id), Ask::kQueued);
  start();
  EXPECT_EQ(tiers_->in_flight(Origin::kPeer), 4u);
  EXPECT_EQ(tiers_->waiting(Origin::kPeer), 3u);
  for (int i = 0; i < 7; ++i) {
    answer(true);
    EXPECT_EQ(wait_one().origin, Origin::kPeer);
  }
}

TEST_F(PeersTest, WhatWasGivenUpIsNotTakenForWhatIsAskedAnew) {
  EXPECT_EQ(ask(4), Ask::kQueued);
  start();
  const auto asked = agent_.claim(kAgent);
  ASSERT_TRUE(asked);
  tiers_->drain();
  EXPECT_EQ(tiers_->in_flight(Origin::kPeer), 0u);
  EXPECT_EQ(ask(4), Ask::kQueued) << "its room is free";
  start();
  agent_.end(*asked, false);
  answer(true);
  EXPECT_EQ(wait_one().origin, Origin::kPeer);
}

}  // namespace
}  // namespace foreload
