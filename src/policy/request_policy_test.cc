#include "policy/request_policy.h"

#include <gtest/gtest.h>

#include <vector>

namespace foreload {
namespace {

using namespace std::chrono_literals;

RequestPolicy plain(const RequestOptions& options = {}) {
  return RequestPolicy(Time{0}, options, {});
}

// Requests that are silent for 10 ms, enough of them that more is known to be slow.
void learn(RequestPolicy& policy, Time until) {
  for (int i = 0; i < 200; ++i) policy.on_done(until - 1ms, {.bytes = 1000, .silence = 10ms});
}

TEST(RequestPolicyTest, GroupsAreFormedWhileThereIsRoom) {
  RequestPolicy policy = plain({.window = {.first = 2, .most = 2}});
  policy.want(1ms, {.tag = 7, .object = 1, .offset = 0, .length = 100});
  policy.want(1ms, {.tag = 8, .object = 1, .offset = 100, .length = 100});
  policy.want(1ms, {.tag = 9, .object = 2, .offset = 0, .length = 100});
  EXPECT_EQ(policy.next_group(1ms, 0).size(), 2u);
  EXPECT_TRUE(policy.next_group(1ms, 2).empty()) << "no room";
  EXPECT_TRUE(policy.has_waiting());
  EXPECT_EQ(policy.next_group(1ms, 1).at(0).tag, 9u);
  EXPECT_FALSE(policy.has_waiting());
  EXPECT_TRUE(policy.next_group(1ms, 0).empty()) << "nothing waits";
}

TEST(RequestPolicyTest, OnlySilentRequestsAreSentTwiceAndNoneWhileTheStoreThrottles) {
  RequestPolicy policy = plain({.window = {.first = 4, .most = 4}});
  EXPECT_FALSE(policy.hedge(1s, 1, 10s, 1)) << "nothing is known";
  learn(policy, 2s);
  EXPECT_FALSE(policy.hedge(2s, 1, 5ms, 1));
  EXPECT_FALSE(policy.hedge(2s, 1, 10s, 4)) << "no room";
  EXPECT_TRUE(policy.hedge(2s, 1, 10s, 1));
  policy.on_throttled(2s);
  EXPECT_FALSE(policy.hedge(2s, 2, 10s, 1));
  EXPECT_EQ(policy.hedge_delay(2s), Duration::max());
  EXPECT_EQ(policy.calm_again(), Time(3s));
  EXPECT_TRUE(policy.hedge(3s, 2, 10s, 1));
}

TEST(RequestPolicyTest, FailedGroupsReturnInTheOrderOfTheirPauses) {
  RequestPolicy policy = plain({.retry = {.attempts = 3, .first_pause = 100ms, .longest_pause = 1s}});
  EXPECT_EQ(policy.next_retry_at(), Time::max());
  EXPECT_TRUE(policy.retry(Time{0}, {.group = 1, .attempts = 2}));  // at least 100 ms
  EXPECT_TRUE(policy.retry(Time{0}, {.group = 2, .attempts = 1, .asked = 5s}));
  EXPECT_FALSE(policy.retry(Time{0}, {.group = 3, .attempts = 3})) << "the last attempt";
  EXPECT_TRUE(policy.retry(Time{0}, {.group = 4, .attempts = 1}));  // at most 100 ms
  EXPECT_FALSE(policy.next_retry(49ms, 0));
  EXPECT_FALSE(policy.next_retry(10s, 16)) << "no room";
  EXPECT_EQ(policy.next_retry(10s, 0), 4u);
  EXPECT_EQ(policy.next_retry(10s, 0), 1u);
  EXPECT_EQ(policy.next_retry_at(), Time(5s));
  EXPECT_EQ(policy.next_retry(10s, 0), 2u);
  EXPECT_FALSE(policy.next_retry(10s, 0));
}

TEST(RequestPolicyTest, DoubtfulAnswersAreAskedForThreeTimesMore) {
  RequestPolicy policy = plain({.retry = {.attempts = 100}});
  for (unsigned doubts = 1; doubts < 4; ++doubts) EXPECT_TRUE(policy.retry(1s, {.attempts = 50, .doubts = doubts}));
  EXPECT_FALSE(policy.retry(1s, {.attempts = 4, .doubts = 4}));
}

TEST(RequestPolicyTest, NothingIsLeftAfterACancellation) {
  std::vector<Event> events;
  RequestPolicy policy(Time{0}, {}, [&](const Event& event) { events.push_back(event); });
  policy.want(1ms, {.tag = 1, .length = 10});
  EXPECT_TRUE(policy.retry(1ms, {.group = 2, .attempts = 1}));
  policy.cancel(2ms);
  policy.cancel(2ms);
  EXPECT_FALSE(policy.has_waiting());
  EXPECT_EQ(policy.next_retry_at(), Time::max());
  ASSERT_EQ(events.size(), 5u) << "two that say how it begins, and one for what was cancelled";
  EXPECT_EQ(events.back().kind, EventKind::kCancelled);
  EXPECT_EQ(events.back().a, 1u);
  EXPECT_EQ(events.back().b, 1u);
}

TEST(RequestPolicyTest, ItsFirstEventsSayHowItWasMade) {
  const RequestOptions options{.coalesce = {.longest = 3_MiB, .small_gap = 5, .large_gap = 77},
                               .window = {.first = 3, .most = 9},
                               .retry = {.attempts = 4, .first_pause = 1s, .longest_pause = 2s, .longest_asked = 3s},
                               .jitter = ~0ull};
  std::vector<Event> events;
  const RequestPolicy policy(5s, options, [&](const Event& event) { events.push_back(event); });
  ASSERT_EQ(events.size(), 2u);
  std::vector<Event> again;
  const RequestPolicy same(5s, recorded_options(events[0], events[1]), [&](const Event& e) { again.push_back(e); });
  ASSERT_EQ(again.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(again[i].kind, i == 0 ? EventKind::kRequests : EventKind::kRetryRule);
    EXPECT_EQ(again[i].position, events[i].position);
    EXPECT_EQ(again[i].a, events[i].a);
    EXPECT_EQ(again[i].b, events[i].b);
    EXPECT_EQ(again[i].c, events[i].c);
  }
  EXPECT_EQ(events[0].b, 3_MiB);
  EXPECT_EQ(events[1].position, 4u);
}

}  // namespace
}  // namespace foreload
