#include "store/object_reader.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/clock.h"
#include "base/random.h"
#include "store/object_reader_testing.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

TEST(ObjectReaderTest, RangesAnywhereComeIntoTheirSpans) {
  TestServer server(plain());
  Reading reading(server, kContent);
  KeyedRandom random(1, 0, 0, 0);
  for (int i = 0; i < 300; ++i) {
    const Bytes offset = random.below(kContent.size() - 1);
    reading.want(offset, 1 + random.below(std::min<Bytes>(kContent.size() - offset, 50'000)));
  }
  reading.want(0, kContent.size());
  reading.expect_all_right();
  EXPECT_LE(server.connections(), 128u) << "docs/design/object-stores.md";
}

TEST(ObjectReaderTest, NeighboursOfOneCallShareARequest) {
  TestServer server(plain());
  Reading reading(server, kContent);
  for (Bytes i = 0; i < 20; ++i) reading.want(i * 41'000, 40'000);
  reading.expect_all_right();
  EXPECT_EQ(server.requests(), 1u);
  EXPECT_EQ(reading.stats().requests, 1u);
  EXPECT_EQ(reading.stats().bytes, 19u * 41'000 + 40'000);
}

TEST(ObjectReaderTest, NeighboursThatWaitForAConnectionShareARequest) {
  TestServer server([](const TestRequest& request) {
    return TestReply{.bytes = object_reply(request, kContent), .delay = request.number == 1 ? 300ms : 0ms};
  });
  ObjectReaderOptions options = quick();
  options.window = {.first = 1, .most = 1};
  Reading reading(server, kContent, options);
  reading.want(2'000'000, 10);
  reading.submit();
  for (Bytes i = 0; i < 10; ++i) {
    reading.want(i * 1000, 1000);
    reading.submit();
  }
  reading.expect_all_right();
  EXPECT_EQ(server.requests(), 2u);
}

TEST(ObjectReaderTest, ConnectionsAreUsedAgain) {
  TestServer server(plain());
  Reading reading(server, kContent);
  for (int i = 0; i < 30; ++i) {
    reading.want(i * 50'000, 1000);
    reading.expect_all_right();
  }
  EXPECT_EQ(server.connections(), 1u);
}

TEST(ObjectReaderTest, NoMoreRequestsAreUnderWayThanTheWindowAllows) {
  EXPECT_EQ(RequestWindowOptions().most, 128u) << "docs/design/object-stores.md";
  std::atomic<unsigned> under_way{0};
  std::atomic<unsigned> most{0};
  TestServer server([&](const TestRequest& request) {
    const unsigned others = under_way++;
    for (unsigned known = most; known < others + 1 && !most.compare_exchange_weak(known, others + 1);) {
    }
    std::this_thread::sleep_for(2ms);
    --under_way;
    return TestReply{object_reply(request, kContent)};
  });
  ObjectReaderOptions options = quick();
  options.window = {.first = 3, .most = 5};
  Reading reading(server, kContent, options);
  for (Bytes i = 0; i < 400; ++i) reading.want(i % 290 * 10'000, 100, i);
  reading.expect_all_right();
  EXPECT_GE(most, 3u);
  EXPECT_LE(most, 5u);
}

TEST(ObjectReaderTest, WhatMayPassIsAskedAgain) {
  for (const int status : {429, 500, 503}) {
    TestServer server([&](const TestRequest& request) {
      return request.number % 3 != 0 ? TestReply{http_reply(status, "", "<Code>SlowDown</Code>")}
                                     : TestReply{object_reply(request, kContent)};
    });
    Reading reading(server, kContent);
    reading.want(1000, 5000);
    reading.expect_all_right();
    EXPECT_EQ(reading.stats().retries, 2u);
    EXPECT_EQ(reading.stats().throttled, status == 500 ? 0u : 2u);
    EXPECT_EQ(server.connections(), 1u) << "the connection survives an error's text";
  }
}

TEST(ObjectReaderTest, AServerThatIsGoneIsAnErrorAfterAllAttempts) {
  auto server = std::make_unique<TestServer>(plain());
  Reading reading(*server, kContent);
  server.reset();
  reading.want(0, 10);
  const auto results = reading.read();
  EXPECT_EQ(results.at(0).outcome, ReadOutcome::kFailed);
  EXPECT_EQ(results.at(0).attempts, 6u);
  EXPECT_NE(results.at(0).error.message.find("no connection"), std::string::npos) << results.at(0).error.message;
}

TEST(ObjectReaderTest, ASlowRequestIsSentTwiceAndTheFirstAnswerWins) {
  TestServer server([](const TestRequest& request) {
    return TestReply{.bytes = object_reply(request, kContent), .delay = request.number == 151 ? 20'000ms : 2ms};
  });
  Reading reading(server, kContent);
  for (int i = 0; i < 150; ++i) {
    reading.want(i * 10'000, 1000);
    reading.expect_all_right();
  }
  const Time began = now();
  reading.want(2'000'000, 100'000);
  reading.expect_all_right();
  EXPECT_LT(now() - began, Duration(10s));
  EXPECT_GE(reading.stats().hedges, 1u);
  EXPECT_LE(reading.stats().hedges, 8u) << "one of twenty";
}

TEST(ObjectReaderTest, AnAnswerThatStopsInTheMiddleIsSentTwiceToo) {
  TestServer server([](const TestRequest& request) {
    return TestReply{.bytes = object_reply(request, kContent), .stall = request.number == 151 ? 20'000ms : 0ms};
  });
  Reading reading(server, kContent);
  for (int i = 0; i < 150; ++i) {
    reading.want(i * 10'000, 1000);
    reading.expect_all_right();
  }
  reading.want(2'000'000, 500'000);
  const Time began = now();
  reading.expect_all_right();
  EXPECT_LT(now() - began, Duration(10s));
}

TEST(ObjectReaderTest, HurryEndsWaitsPausesAndRequests) {
  TestServer server([](const TestRequest& request) {
    if (request.number % 2 == 0) return TestReply{http_reply(503, "Retry-After: 30\r\n", "")};
    return TestReply{.bytes = object_reply(request, kContent), .delay = 20'000ms};
  });
  ObjectReaderOptions options = quick();
  options.http.retry = {.attempts = 6, .first_pause = 20s, .longest_pause = 20s};
  options.window = {.first = 4, .most = 4};
  Reading reading(server, kContent, options);
  for (Bytes i = 0; i < 12; ++i) reading.want(i * 200'000, 1000);
  reading.submit();
  while (server.requests() < 4) std::this_thread::sleep_for(1ms);
  const Time began = now();
  reading.reader().hurry(true);
  for (const ObjectResult& result : reading.wait()) {
    EXPECT_EQ(result.outcome, ReadOutcome::kFailed);
    EXPECT_EQ(result.error.code, Code::kCancelled);
  }
  EXPECT_LT(now() - began, Duration(10s));
}

TEST(ObjectReaderTest, AReaderEndsWhileRequestsAreUnderWay) {
  TestServer server([](const TestRequest& request) {
    return TestReply{.bytes = object_reply(request, kContent), .delay = 20'000ms};
  });
  Reading reading(server, kContent);
  for (Bytes i = 0; i < 10; ++i) reading.want(i * 200'000, 1000);
  reading.submit();
  while (server.requests() < 3) std::this_thread::sleep_for(1ms);
  const Time began = now();
  reading.end();
  EXPECT_LT(now() - began, Duration(10s));
}

}  // namespace
}  // namespace foreload
