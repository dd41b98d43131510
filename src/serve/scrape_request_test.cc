#include "serve/scrape_request.h"

#include <gtest/gtest.h>

#include <random>

namespace foreload {
namespace {

TEST(ScrapeRequestTest, AHeadEndsAtItsEmptyLine) {
  EXPECT_EQ(head_end("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 27u);
  EXPECT_EQ(head_end("GET / HTTP/1.1\n\nbody"), 16u);
  for (const char* part : {"", "\r", "GET", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\n\r", "a\r\nb: c\r\n"}) {
    EXPECT_FALSE(head_end(part)) << part;
  }
}

TEST(ScrapeRequestTest, TheEndIsFoundHoweverTheBytesArrive) {
  const std::string head = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
  for (std::size_t first = 0; first < head.size(); ++first) {
    EXPECT_FALSE(head_end(head.substr(0, first)));
    EXPECT_EQ(head_end(head, first), head.size()) << first;
  }
}

TEST(ScrapeRequestTest, OnlyGetOfTwoPathsIsAnswered) {
  EXPECT_EQ(asked_for("GET /metrics HTTP/1.1\r\n\r\n"), Asked::kMetrics);
  EXPECT_EQ(asked_for("GET /metrics?name=a HTTP/1.0\n\n"), Asked::kMetrics);
  EXPECT_EQ(asked_for("GET /healthz HTTP/1.1\r\nHost: b\r\n\r\n"), Asked::kHealth);
  EXPECT_EQ(asked_for("POST /metrics HTTP/1.1\r\n\r\n"), Asked::kOtherMethod);
  EXPECT_EQ(asked_for("HEAD /healthz HTTP/1.1\r\n\r\n"), Asked::kOtherMethod);
  for (const char* path : {"/", "/metrics/", "/metric", "/metricss", "/Metrics", "/../metrics", "//metrics"}) {
    EXPECT_EQ(asked_for(std::string("GET ") + path + " HTTP/1.1\r\n\r\n"), Asked::kUnknown) << path;
  }
}

TEST(ScrapeRequestTest, WhatIsNoRequestIsMalformed) {
  for (const char* head :
       {"", "\r\n\r\n", "GET", "GET /metrics", "GET /metrics\r\n\r\n", "GET  /metrics HTTP/1.1\r\n\r\n",
        "get /metrics HTTP/1.1\r\n\r\n", "GET metrics HTTP/1.1\r\n\r\n", "GET /metrics HTTP/2.0\r\n\r\n",
        "GET /metrics HTTP/1.1 x\r\n\r\n", "GET\t/metrics\tHTTP/1.1\r\n\r\n", " GET /metrics HTTP/1.1\r\n\r\n",
        "GET http://a/metrics HTTP/1.1\r\n\r\n", "\x16\x03\x01 / HTTP/1.1\r\n\r\n"}) {
    EXPECT_EQ(asked_for(head), Asked::kMalformed) << head;
  }
}

TEST(ScrapeRequestTest, AnyBytesAreJudgedWithoutHarm) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::string good = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
  for (int round = 0; round < 20'000; ++round) {
    std::string head = good.substr(0, random() % (good.size() + 1));
    for (unsigned change = random() % 4; change > 0 && !head.empty(); --change) {
      head[random() % head.size()] = static_cast<char>(random());
    }
    const auto end = head_end(head);
    EXPECT_LE(end.value_or(0), head.size());
    EXPECT_TRUE(asked_for(head) != Asked::kMetrics || head.starts_with("GET /metrics")) << head;
  }
}

TEST(ScrapeRequestTest, AnAnswerSaysHowLongItIsAndThatTheConnectionCloses) {
  EXPECT_EQ(http_bytes({.status = 404, .type = "a/b", .body = "xyz"}),
            "HTTP/1.1 404 Not Found\r\nContent-Type: a/b\r\nContent-Length: 3\r\nConnection: close\r\n\r\nxyz");
  EXPECT_NE(http_bytes({.status = 405}).find("\r\nAllow: GET\r\n"), std::string::npos);
}

}  // namespace
}  // namespace foreload
