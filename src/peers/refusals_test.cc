#include "peers/refusals.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

constexpr PeerKey key(std::uint64_t roster) {
  return {.fingerprint = 1, .validators = 2, .roster = roster};
}

TEST(RefusalsTest, AKeyIsLeftAloneForAPauseAfterItsLastRefusal) {
  const Time begin = std::chrono::seconds(100);
  Refusals refusals;
  EXPECT_FALSE(refusals.refuses(key(1), begin));
  refusals.on_refused(key(1), begin);
  EXPECT_TRUE(refusals.refuses(key(1), begin));
  EXPECT_TRUE(refusals.refuses(key(1), begin + Refusals::kPause - Duration(1)));
  EXPECT_FALSE(refusals.refuses(key(1), begin + Refusals::kPause));
  EXPECT_FALSE(refusals.refuses(key(2), begin));
  refusals.on_refused(key(1), begin + Refusals::kPause);
  EXPECT_TRUE(refusals.refuses(key(1), begin + Refusals::kPause));
}

TEST(RefusalsTest, AKeyThatIsServedIsRefusedNoLonger) {
  Refusals refusals;
  refusals.on_refused(key(1), Time(0));
  refusals.on_refused(key(2), Time(0));
  refusals.on_served(key(1));
  refusals.on_served(key(3));
  EXPECT_FALSE(refusals.refuses(key(1), Time(0)));
  EXPECT_TRUE(refusals.refuses(key(2), Time(0)));
}

TEST(RefusalsTest, OfTooManyKeysTheOneThatWasRefusedLongestAgoIsForgotten) {
  Refusals refusals;
  for (std::uint64_t i = 0; i < Refusals::kMostKeys; ++i) refusals.on_refused(key(i), Time(0));
  refusals.on_refused(key(0), Time(1));
  refusals.on_refused(key(1000), Time(2));
  EXPECT_FALSE(refusals.refuses(key(1), Time(2)));
  for (std::uint64_t i = 2; i < Refusals::kMostKeys; ++i) EXPECT_TRUE(refusals.refuses(key(i), Time(2)));
  EXPECT_TRUE(refusals.refuses(key(0), Time(2)));
  EXPECT_TRUE(refusals.refuses(key(1000), Time(2)));
}

}  // namespace
}  // namespace foreload
