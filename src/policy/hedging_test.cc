#include "policy/hedging.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

TEST(HedgingTest, NothingIsSentTwiceBeforeEnoughIsKnown) {
  Hedging hedging;
  for (int i = 0; i < 99; ++i) {
    EXPECT_EQ(hedging.delay(), Duration::max());
    hedging.on_done(20ms);
  }
  hedging.on_done(20ms);
  EXPECT_LT(hedging.delay(), Duration::max());
}

TEST(HedgingTest, TheDelayLiesJustAboveWhatIsUsual) {
  for (const Duration usual : {Duration(30ms), Duration(75ms), Duration(3s)}) {
    Hedging hedging;
    for (int i = 0; i < 500; ++i) hedging.on_done(usual);
    EXPECT_GE(hedging.delay(), usual);
    EXPECT_LE(hedging.delay(), usual * 5 / 4);
  }
}

TEST(HedgingTest, StragglersAreFoundEvenWhenTheyAreMoreThanOneOfAHundred) {
  Hedging hedging;
  KeyedRandom random(1, 0, 0, 0);
  for (int i = 0; i < 1000; ++i) hedging.on_done(random.below(100) < 4 ? 200ms : 20ms);
  EXPECT_GE(hedging.delay(), Duration(20ms));
  EXPECT_LE(hedging.delay(), Duration(80ms));
}

TEST(HedgingTest, AtMostOneOfTwentyIsSentTwiceWhateverHappens) {
  Hedging hedging;
  KeyedRandom random(2, 0, 0, 0);
  int hedged = 0;
  const int requests = 100'000;
  for (int i = 0; i < requests; ++i) {
    const Duration silence = 1ms * (1 + random.below(i % 1000 < 500 ? 10 : 1000));  // it gets worse in waves
    if (silence > hedging.delay()) {
      hedging.on_hedged();
      ++hedged;
    }
    hedging.on_done(silence);
  }
  EXPECT_GT(hedged, requests / 200);
  EXPECT_LE(hedged, requests / 20);
}

TEST(HedgingTest, OldNewsFade) {
  Hedging hedging;
  for (int i = 0; i < 10'000; ++i) hedging.on_done(10ms);
  for (int i = 0; i < 8'000; ++i) hedging.on_done(100ms);
  EXPECT_GE(hedging.delay(), Duration(100ms));
}

TEST(HedgingTest, AnySilenceHasAPlace) {
  Hedging hedging;
  for (int i = 0; i < 100; ++i) hedging.on_done(Duration(i));
  EXPECT_EQ(hedging.delay(), Duration(20ms)) << "not the noise of this machine";
  for (int i = 0; i < 5000; ++i) hedging.on_done(Duration::max());
  EXPECT_GT(hedging.delay(), Duration(1min));
}

}  // namespace
}  // namespace foreload
