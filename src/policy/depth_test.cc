#include "policy/depth.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foreload {
namespace {

using namespace std::chrono_literals;

DepthControl of_requests(unsigned first) {
  return DepthControl(128, {.first = first, .period = 100ms, .worthwhile = 1.05});
}

// A store under a virtual clock: it answers `window` requests per round trip, at most `limit` of them, and complains
// when more than `patience` come at once.
struct Store {
  unsigned limit = 1000;
  unsigned patience = 1000;
  Time now{};
  unsigned complaints = 0;

  void round(DepthControl& window) {
    now += 20ms;
    const unsigned sent = window.depth();
    if (sent > patience) {
      ++complaints;
      window.on_throttled(now);
      return;
    }
    const Bytes bytes = 100'000ull * std::min(sent, limit) / sent;
    for (unsigned i = 0; i < sent; ++i) window.on_done(now, bytes, true);
  }
  void rounds(DepthControl& window, int count) {
    for (int i = 0; i < count; ++i) round(window);
  }
};

TEST(DepthControlTest, OpensWhileMoreRequestsBringMoreBytes) {
  DepthControl window = of_requests(8);
  Store store;
  store.rounds(window, 100);
  EXPECT_EQ(window.depth(), 128u);
}

TEST(DepthControlTest, GoesBackWhenTheDoubleBringsNothing) {
  DepthControl window = of_requests(8);
  Store store{.limit = 30};
  store.rounds(window, 400);
  EXPECT_GE(window.depth(), 32u);
  EXPECT_LE(window.depth(), 64u);
}

TEST(DepthControlTest, StaysAsItIsWhileNothingWaits) {
  DepthControl window = of_requests(8);
  Time now{};
  for (int i = 0; i < 1000; ++i) window.on_done(now += 1ms, 100'000, false);
  EXPECT_EQ(window.depth(), 8u);
}

TEST(DepthControlTest, IsHalvedOncePerCrowdAndNeverBelowOne) {
  DepthControl window = of_requests(64);
  for (int i = 0; i < 40; ++i) window.on_throttled(Time(10ms + i * 1ms));
  EXPECT_EQ(window.depth(), 32u);
  EXPECT_TRUE(window.was_throttled(100ms));
  EXPECT_FALSE(window.was_throttled(2s));
  for (int i = 1; i < 20; ++i) window.on_throttled(Time(i * 1s));
  EXPECT_EQ(window.depth(), 1u);
}

TEST(DepthControlTest, FindsAStoresPatienceAndComplaintsBecomeRare) {
  DepthControl window = of_requests(32);
  Store store{.patience = 40};
  store.rounds(window, 500);
  const unsigned settling = store.complaints;
  EXPECT_GT(settling, 0u);
  store.complaints = 0;
  unsigned smallest = 128;
  for (int i = 0; i < 2000; ++i) {
    store.round(window);
    smallest = std::min(smallest, window.depth());
  }
  EXPECT_LT(store.complaints, 40u) << "of 2,000 rounds";
  EXPECT_GE(smallest, 19u) << "one complaint costs half of it, not more";
}

TEST(DepthControlTest, OpensAgainAfterTheStoreHasCalmedDown) {
  DepthControl window = of_requests(32);
  for (int i = 0; i < 5; ++i) window.on_throttled(Time(i * 1s));
  EXPECT_EQ(window.depth(), 1u);
  Store store{.now = 10s};
  store.rounds(window, 600);
  EXPECT_GT(window.depth(), 32u);
}

}  // namespace
}  // namespace foreload
