#include "tier/peer_desk.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "plan/test_statistics.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr MemberId kAgent{.index = 3, .generation = 7};

std::byte content_of(SampleId id, std::size_t place) {
  return static_cast<std::byte>(id * 31 + place);
}

class PeerDeskTest : public testing::Test {
 protected:
  static constexpr Bytes kRoom = 4096;

  // Two mappings of the same memory: the stream's and the agent's.
  PeerDeskTest() : memory_(PeerDesk::region_bytes(kRoom) / sizeof(Line)) {
    asker_.begin([this](MemberId id) { return !(id == kAgent) || alive_; });
  }

  void answer(const PeerDesk::Asked& asked) {
    for (std::size_t i = 0; i < asked.into.size(); ++i) asked.into[i] = content_of(asked.id, i);
    agent_.end(asked, true);
  }
  // What has ended: id → whether its bytes came, and were right.
  std::map<SampleId, bool> ended(Time now) {
    std::map<SampleId, bool> found;
    asker_.take(now, [&](const PeerDesk::End& end) {
      bool right = end.bytes.has_value();
      for (std::size_t i = 0; right && i < end.bytes->size(); ++i) right = (*end.bytes)[i] == content_of(end.id, i);
      EXPECT_EQ(right, end.bytes.has_value()) << "wrong bytes of " << end.id;
      EXPECT_TRUE(found.emplace(end.id, right).second) << "ended twice";
    });
    return found;
  }

  struct alignas(64) Line {
    std::array<std::byte, 64> bytes{};
  };
  std::vector<Line> memory_;
  bool alive_ = true;
  PeerDesk asker_{std::as_writable_bytes(std::span(memory_))};
  PeerDesk agent_{std::as_writable_bytes(std::span(memory_))};
};

TEST_F(PeerDeskTest, WhatIsAskedForIsAnsweredInOrder) {
  ASSERT_TRUE(asker_.ask(5, 2, 100, Time{0}));
  ASSERT_TRUE(asker_.ask(9, 1, 50, Time{0}));
  EXPECT_EQ(asker_.open(), 2u);
  const auto first = agent_.claim(kAgent);
  const auto second = agent_.claim(kAgent);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(agent_.claim(kAgent));
  EXPECT_EQ(std::pair(first->id, first->host), std::pair(SampleId{5}, 2u));
  EXPECT_EQ(first->into.size(), 100u);
  EXPECT_TRUE(ended(Time{0}).empty());
  answer(*second);
  EXPECT_EQ(ended(Time{1ms}), (std::map<SampleId, bool>{{9, true}}));
  agent_.end(*first, false);
  EXPECT_EQ(ended(Time{2ms}), (std::map<SampleId, bool>{{5, false}}));
  EXPECT_EQ(asker_.open(), 0u);
  EXPECT_EQ(asker_.next_deadline(), Time::max());
}

TEST_F(PeerDeskTest, ACutIsShorterThanTheSampleAndComesOnlyWhereACropIsWanted) {
  constexpr PeerCrop kCrop{
      .picture_width = 65'535, .picture_height = 400, .x = 65'000, .y = 200, .width = 535, .height = 200};
  using Outcome = std::pair<bool, std::optional<std::size_t>>;  // whether it is said to be cut, and what came
  const auto answered = [&](const PeerCrop& crop, Bytes cut) {
    EXPECT_TRUE(asker_.ask(5, 2, 1000, Time{0}, crop));
    const auto asked = agent_.claim(kAgent);
    EXPECT_TRUE(asked);
    EXPECT_EQ(asked->crop, crop);
    EXPECT_EQ(asked->into.size(), 1000u) << "also the whole sample has room";
    agent_.end(*asked, true, cut);
    Outcome outcome;
    asker_.take(Time{0}, [&](const PeerDesk::End& end) {
      outcome = {end.is_cut, end.bytes ? std::optional(end.bytes->size()) : std::nullopt};
    });
    return outcome;
  };
  EXPECT_EQ(answered(kCrop, 300), (Outcome{true, 300}));
  EXPECT_EQ(answered(kCrop, 0), (Outcome{false, 1000}));
  EXPECT_EQ(answered({}, 0), (Outcome{false, 1000}));
  EXPECT_EQ(answered(kCrop, 1000), (Outcome{true, std::nullopt})) << "who says so is not to be believed";
  EXPECT_EQ(answered(kCrop, ~Bytes{0}), (Outcome{true, std::nullopt}));
  EXPECT_EQ(answered({}, 300), (Outcome{true, std::nullopt})) << "nobody can use it";
}

TEST_F(PeerDeskTest, ACropThatCanNotBeIsNotPassedOn) {
  ASSERT_TRUE(
      asker_.ask(5, 2, 1000, Time{0}, {.picture_width = 10, .picture_height = 10, .x = 9, .width = 2, .height = 1}));
  EXPECT_FALSE(agent_.claim(kAgent));
  EXPECT_EQ(ended(Time{0}), (std::map<SampleId, bool>{{5, false}}));
}

TEST_F(PeerDeskTest, NoMoreIsAskedForThanThereIsRoom) {
  unsigned asked = 0;
  while (asker_.ask(asked, 0, 1000, Time{0})) ++asked;
  EXPECT_EQ(asked, kRoom / 1024);
  answer(*agent_.claim(kAgent));
  EXPECT_EQ(ended(Time{0}).size(), 1u);
  EXPECT_TRUE(asker_.ask(100, 0, 1000, Time{0})) << "the room of the first is free again";
  EXPECT_FALSE(asker_.ask(101, 0, 1000, Time{0}));
}

TEST_F(PeerDeskTest, NobodyAnswersAndItEndsInTime) {
  ASSERT_TRUE(asker_.ask(5, 0, 100, Time{0}));
  EXPECT_EQ(asker_.next_deadline(), PeerDesk::kPatience);
  EXPECT_TRUE(ended(PeerDesk::kPatience - 1ms).empty());
  EXPECT_EQ(ended(PeerDesk::kPatience), (std::map<SampleId, bool>{{5, false}}));
  EXPECT_FALSE(agent_.claim(kAgent)) << "nobody wants it any more";
}

TEST_F(PeerDeskTest, WhatASlowAgentHasInHandRestsUntilItGoesOn) {
  ASSERT_TRUE(asker_.ask(5, 0, 2000, Time{0}));
  const auto taken = agent_.claim(kAgent);
  EXPECT_EQ(ended(PeerDesk::kPatience), (std::map<SampleId, bool>{{5, false}}));
  ASSERT_TRUE(asker_.ask(6, 0, 2000, Time{2s}));
  EXPECT_FALSE(asker_.ask(7, 0, 2000, Time{2s})) << "it may still write to its room";
  const auto other = agent_.claim(kAgent);
  std::ranges::fill(taken->into, std::byte{0xff});
  answer(*other);
  EXPECT_EQ(ended(Time{2s}), (std::map<SampleId, bool>{{6, true}}));
  answer(*taken);
  EXPECT_TRUE(ended(Time{2s}).empty()) << "nobody waits for it";
  EXPECT_TRUE(asker_.ask(7, 0, 2000, Time{2s}));
  EXPECT_TRUE(asker_.ask(8, 0, 2000, Time{2s}));
}

TEST_F(PeerDeskTest, WhatTheDeadHadInHandEndsAtOnce) {
  ASSERT_TRUE(asker_.ask(5, 0, 2000, Time{0}));
  ASSERT_TRUE(agent_.claim(kAgent));
  alive_ = false;
  EXPECT_EQ(ended(Time{1ms}), (std::map<SampleId, bool>{{5, false}}));
  EXPECT_TRUE(asker_.ask(5, 0, 2000, Time{1ms}));
}

TEST_F(PeerDeskTest, AnyOrderOfAskingAnsweringAndDyingKeepsTheBooks) {
  std::mt19937_64 random(fresh_seed());
  Time now{0};
  std::map<SampleId, Bytes> open;
  std::vector<PeerDesk::Asked> taken;
  SampleId next = 0;
  std::uint64_t came = 0;
  for (int step = 0; step < 200'000; ++step) {
    now += Duration(random() % 20'000'000);
    switch (random() % 8) {
      case 0:
      case 1:
      case 2: {
        const Bytes length = 1 + random() % asker_.longest();
        if (asker_.ask(next, 0, length, now)) open[next++] = length;
        break;
      }
      case 3:
      case 4:
        if (auto asked = agent_.claim(kAgent)) {
          const auto found = open.find(asked->id);
          ASSERT_TRUE(found != open.end() && found->second == asked->into.size());
          taken.push_back(*asked);
        }
        break;
      case 5:
        if (taken.empty()) break;
        std::swap(taken[random() % taken.size()], taken.back());
        random() % 4 == 0 ? agent_.end(taken.back(), false) : answer(taken.back());
        taken.pop_back();
        break;
      case 6:
        for (const auto& [id, here] : ended(now)) {
          came += here;
          ASSERT_EQ(open.erase(id), 1u);
        }
        ASSERT_EQ(asker_.open(), open.size());
        break;
      default:
        if (random() % 100 != 0) break;
        alive_ = false;  // its requests end; then another one comes
        for (const auto& [id, here] : ended(now)) open.erase(id);
        taken.clear();
        alive_ = true;
    }
  }
  EXPECT_GT(came, 1000u);
  now += PeerDesk::kPatience;
  for (const auto& [id, here] : ended(now)) open.erase(id);
  EXPECT_TRUE(open.empty());
}

TEST_F(PeerDeskTest, WhoDoesNotAnswerIsLeftAloneForLongerAndLonger) {
  Time now{1s};
  Duration rest = PeerDesk::kPatience;
  for (int turn = 0; turn < 8; ++turn) {
    EXPECT_FALSE(asker_.rests());
    for (SampleId id = 0; id < 3; ++id) ASSERT_TRUE(asker_.ask(id, 0, 10, now));
    now += PeerDesk::kPatience;
    EXPECT_EQ(ended(now).size(), 3u);
    EXPECT_TRUE(asker_.rests());
    (void)ended(now + rest - 1ms);
    EXPECT_TRUE(asker_.rests());
    now += rest;
    (void)ended(now);
    rest = std::min<Duration>(2 * rest, PeerDesk::kLongestRest);
  }
  ASSERT_TRUE(asker_.ask(5, 0, 10, now));
  agent_.end(*agent_.claim(kAgent), false);
  EXPECT_EQ(ended(now).size(), 1u);
  EXPECT_FALSE(asker_.rests()) << "an answer, if only that the peer does not have it";
  ASSERT_TRUE(asker_.ask(6, 0, 10, now));
  now += PeerDesk::kPatience;
  (void)ended(now);
  (void)ended(now + PeerDesk::kPatience);
  EXPECT_FALSE(asker_.rests()) << "the next rest is a short one";
}

TEST_F(PeerDeskTest, WhateverStandsInTheMemoryNobodyReadsOrWritesBeyondIt) {
  std::mt19937_64 random(fresh_seed());
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(memory_));
  for (int round = 0; round < 2'000; ++round) {
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t noise = random() % 3 == 0 ? random() % 8 : random();
      std::memcpy(bytes.data() + random() % (PeerDesk::kEntries * 64 / 8) * 8, &noise, 8);
    }
    (void)asker_.ask(static_cast<SampleId>(round), 0, 1 + random() % asker_.longest(), Time{round * 1ms});
    for (int i = 0; i < 4; ++i) {
      if (const auto asked = agent_.claim(kAgent)) answer(*asked);
    }
    asker_.take(Time{round * 1ms}, [](const PeerDesk::End& end) {
      EXPECT_LE(end.bytes.value_or(std::span<const std::byte>{}).size(), kRoom);
    });
  }
}

}  // namespace
}  // namespace foreload
