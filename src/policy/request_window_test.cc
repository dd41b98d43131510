#include "policy/request_window.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foreload {
namespace {

using namespace std::chrono_literals;

// A store under a virtual clock: it answers `window` requests per round trip, at most `limit` of them, and complains
// when more than `patience` come at once.
struct Store {
  unsigned limit = 1000;
  unsigned patience = 1000;
  Time now{};
  unsigned complaints = 0;

  void round(RequestWindow& window) {
    now += 20ms;
    const unsigned sent = window.size();
    window.on_limited(now);
    if (sent > patience) {
      ++complaints;
      window.on_throttled(now);
      return;
    }
    const Bytes bytes = 100'000ull * std::min(sent, limit) / sent;
    for (unsigned i = 0; i < sent; ++i) window.on_done(now, bytes);
  }
  void rounds(RequestWindow& window, int count) {
    for (int i = 0; i < count; ++i) round(window);
  }
};

TEST(RequestWindowTest, OpensWhileMoreRequestsBringMoreBytes) {
  RequestWindow window({.first = 8, .most = 128});
  Store store;
  store.rounds(window, 100);
  EXPECT_EQ(window.size(), 128u);
}

TEST(RequestWindowTest, GoesBackWhenTheDoubleBringsNothing) {
  RequestWindow window({.first = 8, .most = 128});
  Store store{.limit = 30};
  store.rounds(window, 400);
  EXPECT_GE(window.size(), 32u);
  EXPECT_LE(window.size(), 64u);
}

TEST(RequestWindowTest, StaysAsItIsWhileNothingWaits) {
  RequestWindow window({.first = 8, .most = 128});
  Time now{};
  for (int i = 0; i < 1000; ++i) window.on_done(now += 1ms, 100'000);
  EXPECT_EQ(window.size(), 8u);
}

TEST(RequestWindowTest, IsHalvedOncePerCrowdAndNeverBelowOne) {
  RequestWindow window({.first = 64, .most = 128});
  for (int i = 0; i < 40; ++i) window.on_throttled(Time(10ms + i * 1ms));
  EXPECT_EQ(window.size(), 32u);
  EXPECT_TRUE(window.was_throttled(100ms));
  EXPECT_FALSE(window.was_throttled(2s));
  for (int i = 1; i < 20; ++i) window.on_throttled(Time(i * 1s));
  EXPECT_EQ(window.size(), 1u);
}

TEST(RequestWindowTest, FindsAStoresPatienceAndComplaintsBecomeRare) {
  RequestWindow window({.first = 32, .most = 128});
  Store store{.patience = 40};
  store.rounds(window, 500);
  const unsigned settling = store.complaints;
  EXPECT_GT(settling, 0u);
  store.complaints = 0;
  unsigned smallest = 128;
  for (int i = 0; i < 2000; ++i) {
    store.round(window);
    smallest = std::min(smallest, window.size());
  }
  EXPECT_LT(store.complaints, 40u) << "of 2,000 rounds";
  EXPECT_GE(smallest, 19u) << "one complaint costs half of it, not more";
}

TEST(RequestWindowTest, OpensAgainAfterTheStoreHasCalmedDown) {
  RequestWindow window({.first = 32, .most = 128});
  for (int i = 0; i < 5; ++i) window.on_throttled(Time(i * 1s));
  EXPECT_EQ(window.size(), 1u);
  Store store{.now = 10s};
  store.rounds(window, 600);
  EXPECT_GT(window.size(), 32u);
}

}  // namespace
}  // namespace foreload
