#include "tier/tier_stack.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/clock.h"
#include "base/test_folder.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Bytes kLength = 5000;

// A dataset of `count` files of kLength bytes, with a stack over it.
class Stack {
 public:
  Stack(std::uint64_t count, std::uint64_t homes, std::uint64_t in_transit, const std::string& storage = "",
        bool lru = false) {
    for (std::uint64_t id = 0; id < count; ++id) {
      folder_.write("s" + std::to_string(100 + id) + ".bin", std::string(kLength, static_cast<char>('a' + id)));
    }
    source_ = std::move(*open_source({.datasets = {folder_.path()}}));
    const Bytes each = Arena::footprint(kLength);
    placement_ = Placement::plan(count, homes * each, 1, [&](SampleId) { return each; });
    arena_ = std::move(*Arena::create({.samples = count, .home = homes * each, .transit = in_transit * each}));
    std::optional<Throttle> throttle;
    if (!storage.empty()) throttle = std::move(*Throttle::open(storage));
    auto engine = open_read_engine({});
    auto bottom = std::make_unique<SourceTier>(*source_, std::move(*engine), std::move(throttle));
    std::unique_ptr<EvictionPolicy> policy = std::make_unique<KeptHomes>(placement_);
    if (lru) policy = std::make_unique<LruEviction>(count);
    tiers_ = std::make_unique<TierStack>(*source_, std::move(policy), *arena_, std::move(bottom));
  }

  TierStack& tiers() { return *tiers_; }
  const Placement& placement() const { return placement_; }
  const TestFolder& folder() const { return folder_; }
  Answer ask(SampleId id) { return ask({.id = id}); }
  // The sample at the next place of the stream; again: at the same one.
  Answer use(SampleId id) { return ask({.id = id, .moment = ++moment_}); }
  Answer use_again(SampleId id) { return ask({.id = id, .moment = moment_}); }
  Answer ask(const Request& request) {
    Answer answer = tiers_->request(request, now());
    while (tiers_->start_next(Origin::kSource, now())) {
    }
    return answer;
  }
  // Reads it if it is not there, and keeps nothing of it.
  Ask pass(SampleId id) {
    const Ask kind = use(id).kind;
    if (kind == Ask::kQueued) (void)wait_one();
    return kind;
  }
  bool has(SampleId id) { return arena_->is_home(id); }
  Arrival wait_one() {
    std::vector<Arrival> arrivals;
    while (arrivals.empty()) tiers_->wait(arrivals, now() + 10s);
    EXPECT_EQ(arrivals.size(), 1u);
    return std::move(arrivals[0]);
  }

 private:
  TestFolder folder_;
  std::unique_ptr<Source> source_;
  Placement placement_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<TierStack> tiers_;
  Moment moment_ = 0;
};

TEST(TierStackTest, OneFlightServesEveryoneWhoAsks) {
  Stack stack(4, 0, 4);
  EXPECT_EQ(stack.ask(2).kind, Ask::kQueued);
  EXPECT_EQ(stack.ask(2).kind, Ask::kJoined);
  EXPECT_EQ(stack.tiers().in_flight(), 1u);
  const Arrival arrival = stack.wait_one();
  ASSERT_TRUE(arrival.status.ok()) << arrival.status.error().message;
  EXPECT_EQ(arrival.lease.bytes()[kLength - 1], std::byte{'c'});
  const Answer hit = stack.ask(2);
  EXPECT_EQ(hit.kind, Ask::kHit);
  EXPECT_EQ(hit.lease.bytes().data(), arrival.lease.bytes().data()) << "a hit is not a copy";
}

TEST(TierStackTest, OnlySamplesWithAHomeStay) {
  Stack stack(6, 3, 6);
  for (SampleId id = 0; id < 6; ++id) {
    ASSERT_EQ(stack.ask(id).kind, Ask::kQueued);
    (void)stack.wait_one();
  }
  for (SampleId id = 0; id < 6; ++id) {
    EXPECT_EQ(stack.ask(id).kind == Ask::kHit, stack.placement().is_home(id)) << "sample " << id;
  }
  stack.tiers().drain();
}

TEST(TierStackTest, AFullTransitHasRoomAgainWhenALeaseIsDropped) {
  Stack stack(3, 0, 1);
  ASSERT_EQ(stack.ask(0).kind, Ask::kQueued);
  EXPECT_EQ(stack.ask(1).kind, Ask::kNoRoom);
  {
    const Arrival arrival = stack.wait_one();
    EXPECT_EQ(stack.ask(1).kind, Ask::kNoRoom);
  }
  EXPECT_EQ(stack.ask(1).kind, Ask::kQueued);
  stack.tiers().drain();
}

TEST(TierStackTest, AReadThatFailsLeavesNothingBehind) {
  Stack stack(3, 0, 1);
  std::ofstream(stack.folder().path("s101.bin"), std::ios::app) << "longer";
  ASSERT_EQ(stack.ask(1).kind, Ask::kQueued);
  const Arrival arrival = stack.wait_one();
  ASSERT_FALSE(arrival.status.ok());
  EXPECT_EQ(arrival.status.error().code, Code::kDataChanged);
  EXPECT_NE(arrival.status.error().message.find("s101.bin"), std::string::npos);
  EXPECT_EQ(stack.ask(0).kind, Ask::kQueued) << "its room in transit is free again";
  stack.tiers().drain();
}

TEST(TierStackTest, ANewcomerGetsTheRoomOfThePolicysVictim) {
  Stack stack(6, 3, 2, "", true);
  for (const SampleId id : {0u, 1u, 2u}) EXPECT_EQ(stack.pass(id), Ask::kQueued);
  EXPECT_EQ(stack.pass(0), Ask::kHit);
  EXPECT_EQ(stack.pass(3), Ask::kQueued);
  EXPECT_FALSE(stack.has(1));
  EXPECT_TRUE(stack.has(0) && stack.has(2) && stack.has(3));
  EXPECT_EQ(stack.ask(3).lease.bytes()[kLength - 1], std::byte{'d'});
  EXPECT_EQ(stack.pass(1), Ask::kQueued) << "what was evicted is read again";
  EXPECT_TRUE(stack.has(1) && stack.has(0) && stack.has(3));
}

TEST(TierStackTest, AVictimWithALeaseStaysAndWhoGetsNoHomePassesThrough) {
  Stack stack(6, 2, 1, "", true);
  for (const SampleId id : {0u, 1u}) EXPECT_EQ(stack.pass(id), Ask::kQueued);
  {
    const Answer held = stack.use(0);
    const Answer other = stack.use(1);
    EXPECT_EQ(stack.use(2).kind, Ask::kQueued);
    const Arrival passing = stack.wait_one();
    EXPECT_EQ(passing.lease.bytes()[0], std::byte{'c'});
    EXPECT_FALSE(stack.has(2));
    EXPECT_TRUE(stack.has(0) && stack.has(1));
    EXPECT_EQ(stack.use(3).kind, Ask::kNoRoom) << "sample 2 is in transit";
  }
  EXPECT_EQ(stack.use_again(3).kind, Ask::kQueued);
  (void)stack.wait_one();
  EXPECT_FALSE(stack.has(3)) << "the policy is asked once per use";
  EXPECT_TRUE(stack.has(0) && stack.has(1));
  EXPECT_EQ(stack.pass(4), Ask::kQueued);
  EXPECT_TRUE(stack.has(4));
}

TEST(TierStackTest, ASampleOutsideOfTheStreamEvictsNobody) {
  Stack stack(6, 1, 2, "", true);
  EXPECT_EQ(stack.pass(0), Ask::kQueued);
  EXPECT_EQ(stack.ask(1).kind, Ask::kQueued);
  (void)stack.wait_one();
  EXPECT_TRUE(stack.has(0));
  EXPECT_FALSE(stack.has(1));
}

TEST(TierStackTest, AFailedReadGivesItsHomeBackToThePolicy) {
  Stack stack(6, 2, 1, "", true);
  std::ofstream(stack.folder().path("s101.bin"), std::ios::app) << "longer";
  EXPECT_EQ(stack.pass(0), Ask::kQueued);
  EXPECT_EQ(stack.use(1).kind, Ask::kQueued);
  EXPECT_FALSE(stack.wait_one().status.ok());
  EXPECT_EQ(stack.pass(2), Ask::kQueued);
  EXPECT_TRUE(stack.has(0) && stack.has(2)) << "there was room without evicting";
  EXPECT_EQ(stack.pass(3), Ask::kQueued);
  EXPECT_TRUE(stack.has(2) && stack.has(3));
}

TEST(TierStackTest, EmulatedStorageHoldsBytesBackUntilTheirTime) {
  Stack stack(3, 0, 3, "50kB/s,10ms");
  const Time start = now();
  for (SampleId id = 0; id < 3; ++id) ASSERT_EQ(stack.ask(id).kind, Ask::kQueued);
  for (int i = 0; i < 3; ++i) (void)stack.wait_one();
  EXPECT_GE(now() - start, 300ms) << "15,000 bytes at 50 kB/s";
}

TEST(TierStackTest, DrainingDoesNotWaitForEmulatedStorage) {
  Stack stack(3, 0, 3, "1B/s");
  ASSERT_EQ(stack.ask(0).kind, Ask::kQueued);
  const Time start = now();
  stack.tiers().drain();
  EXPECT_LT(now() - start, 5s);
  EXPECT_EQ(stack.tiers().in_flight(), 0u);
}

}  // namespace
}  // namespace foreload
