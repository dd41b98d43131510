#include "policy/retrying.h"

#include <gtest/gtest.h>

#include <set>

namespace foreload {
namespace {

using namespace std::chrono_literals;

TEST(RetryingTest, PausesDoubleUpToABoundAndEndAfterTheLastAttempt) {
  const RetryOptions options{.attempts = 10, .first_pause = 100ms, .longest_pause = 2s};
  Duration whole = 100ms;
  for (unsigned attempt = 1; attempt < 10; ++attempt) {
    for (std::uint64_t key = 0; key < 50; ++key) {
      const auto pause = pause_after(options, attempt, 0s, key);
      ASSERT_TRUE(pause.has_value());
      EXPECT_GE(*pause, whole / 2) << "attempt " << attempt;
      EXPECT_LE(*pause, whole) << "attempt " << attempt;
    }
    whole = std::min<Duration>(2 * whole, 2s);
  }
  EXPECT_FALSE(pause_after(options, 10, 0s, 1).has_value());
}

TEST(RetryingTest, ClientsWithDifferentKeysDoNotReturnTogether) {
  std::set<Duration> pauses;
  for (std::uint64_t key = 0; key < 100; ++key) pauses.insert(*pause_after({}, 1, 0s, key));
  EXPECT_GT(pauses.size(), 95u);
  EXPECT_EQ(pause_after({}, 3, 0s, 7), pause_after({}, 3, 0s, 7));
}

TEST(RetryingTest, TheServersWishIsGrantedUpToABound) {
  const RetryOptions options{.longest_asked = 5s};
  EXPECT_EQ(*pause_after(options, 1, 3s, 1), Duration(3s));
  EXPECT_EQ(*pause_after(options, 1, 1h, 1), Duration(5s));
  EXPECT_FALSE(pause_after(options, options.attempts, 1s, 1).has_value());
}

TEST(RetryingTest, NoServerStretchesARequestBeyondABoundedTime) {
  const RetryOptions options{.attempts = 12};
  Duration sum = 0s;
  for (unsigned attempt = 1; const auto pause = pause_after(options, attempt, 1h, 1); ++attempt) sum += *pause;
  EXPECT_EQ(sum, Duration(110s));
}

TEST(RetryingTest, StatusesThatMayPassAreToldFromThoseThatWillNot) {
  for (const int status : {408, 429, 500, 502, 503, 504}) EXPECT_TRUE(may_pass(status)) << status;
  for (const int status : {200, 206, 301, 400, 401, 403, 404, 412, 416, 501, 505}) EXPECT_FALSE(may_pass(status));
  EXPECT_TRUE(is_throttling(429) && is_throttling(503));
  EXPECT_FALSE(is_throttling(500) || is_throttling(200));
}

}  // namespace
}  // namespace foreload
