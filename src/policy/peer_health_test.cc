#include "policy/peer_health.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

using namespace std::chrono_literals;
using Advice = PeerHealth::Advice;

constexpr Time kStart = 1h;

// When it is probed next, to a tenth of a second.
Time next_probe(PeerHealth& health, Time now) {
  for (Time at = now; at < now + 2min; at += 100ms) {
    if (health.advise(at) == Advice::kProbe) return at;
  }
  return kStart + 24h;
}

TEST(PeerHealthTest, APeerIsUsedUntilItFails) {
  PeerHealth health;
  EXPECT_EQ(health.advise(kStart), Advice::kUse);
  health.on_fetched(kStart);
  EXPECT_EQ(health.advise(kStart + 1h), Advice::kUse);
  health.on_failed(kStart, kStart + 1s);
  EXPECT_EQ(health.advise(kStart + 1s), Advice::kLeave);
}

TEST(PeerHealthTest, TheTimeThatItIsLeftAloneDoublesUpToHalfAMinute) {
  PeerHealth health;
  Time now = kStart;
  health.on_failed(now, now);
  for (const Duration pause : {Duration(500ms), Duration(1s), Duration(2s), Duration(4s), Duration(8s), Duration(16s),
                               Duration(30s), Duration(30s)}) {
    EXPECT_EQ(next_probe(health, now), now + pause);
    now += pause;
    health.on_silence(now);
  }
}

TEST(PeerHealthTest, ItIsProbedOnceAtATime) {
  PeerHealth health;
  health.on_failed(kStart, kStart);
  EXPECT_EQ(health.advise(kStart + 1s), Advice::kProbe);
  EXPECT_EQ(health.advise(kStart + 1s), Advice::kLeave);
  EXPECT_EQ(health.advise(kStart + 1h), Advice::kLeave);
}

TEST(PeerHealthTest, FetchesThatFailTogetherAreOneFailure) {
  PeerHealth health;
  for (int i = 0; i < 100; ++i) health.on_failed(kStart, kStart + 1s);
  EXPECT_EQ(next_probe(health, kStart + 1s), kStart + 1500ms);
}

TEST(PeerHealthTest, AProbeThatIsAnsweredMakesItWell) {
  PeerHealth health;
  health.on_hello(7, kStart);
  health.on_failed(kStart, kStart);
  ASSERT_EQ(health.advise(kStart + 1s), Advice::kProbe);
  health.on_hello(7, kStart + 1s);
  EXPECT_EQ(health.advise(kStart + 1s), Advice::kUse);
}

TEST(PeerHealthTest, WhoAnswersProbesAndDeliversNothingIsLeftAloneForLongerAndLonger) {
  PeerHealth health;
  health.on_hello(7, kStart);
  Time now = kStart;
  for (const Duration pause : {Duration(500ms), Duration(1s), Duration(2s), Duration(4s)}) {
    health.on_failed(now, now);
    EXPECT_EQ(next_probe(health, now), now + pause);
    now += pause;
    health.on_hello(7, now);
  }
  health.on_fetched(now);  // now it has delivered
  health.on_failed(now, now);
  EXPECT_EQ(next_probe(health, now), now + 500ms);
}

TEST(PeerHealthTest, APeerThatWasStartedAgainIsUsedAtOnce) {
  PeerHealth health;
  health.on_hello(7, kStart);
  Time now = kStart;
  for (int i = 0; i < 5; ++i) {
    health.on_failed(now, now);
    now = next_probe(health, now);
    health.on_silence(now);
  }
  EXPECT_EQ(health.advise(now), Advice::kLeave);
  health.on_hello(8, now);
  EXPECT_EQ(health.advise(now), Advice::kUse);
  health.on_failed(now, now);
  EXPECT_EQ(next_probe(health, now), now + 500ms);
}

TEST(PeerHealthTest, WhoSaysHelloByItselfIsProbedAtOnceUnlessItIsKnownToBeWell) {
  PeerHealth health;
  EXPECT_TRUE(health.on_greeted(7));
  EXPECT_EQ(health.advise(kStart), Advice::kUse);
  health.on_hello(7, kStart);
  EXPECT_FALSE(health.on_greeted(7));
  EXPECT_TRUE(health.on_greeted(8));
  health.on_failed(kStart, kStart);
  EXPECT_TRUE(health.on_greeted(7));
  EXPECT_EQ(health.advise(kStart + 1h), Advice::kLeave);  // that probe is under way
  health.on_hello(7, kStart + 1ms);
  EXPECT_EQ(health.advise(kStart + 1ms), Advice::kUse);
}

TEST(PeerHealthTest, WhatWasSentToItsPredecessorDoesNotCount) {
  PeerHealth health;
  health.on_hello(7, kStart);
  health.on_hello(8, kStart + 10s);
  health.on_failed(kStart + 9s, kStart + 11s);
  EXPECT_EQ(health.advise(kStart + 11s), Advice::kUse);
  health.on_failed(kStart + 10s, kStart + 11s);
  EXPECT_EQ(health.advise(kStart + 11s), Advice::kLeave);
}

TEST(PeerHealthTest, AProbeThatEndsAfterItsPeerSaidHelloChangesNothing) {
  PeerHealth health;
  health.on_failed(kStart, kStart);
  ASSERT_EQ(health.advise(kStart + 1s), Advice::kProbe);
  health.on_hello(8, kStart + 1s);
  health.on_silence(kStart + 2s);
  EXPECT_EQ(health.advise(kStart + 2s), Advice::kUse);
}

}  // namespace
}  // namespace foreload
