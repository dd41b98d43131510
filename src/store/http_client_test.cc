#include "store/http_client.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/content_range.h"
#include "store/http_server_testing.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

HttpOptions quick(unsigned attempts = 3) {
  return {.connect_timeout = 2s,
          .stall_timeout = 1s,
          .retry = {.attempts = attempts, .first_pause = 1ms, .longest_pause = 5ms, .longest_asked = 20ms}};
}

Result<HttpResponse> get(HttpClient& client, const std::string& url, Bytes longest = 1_MiB) {
  return client.send([&] { return HttpRequest{.url = url}; }, longest);
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(HttpClientTest, AnswersComeWithTheirHeadersAndBody) {
  TestServer server([](const TestRequest& request) {
    EXPECT_EQ(request.headers.at("x-mine"), "1");
    return TestReply{http_reply(200, "ETag: \"e\"\r\nLast-Modified: then\r\ncontent-TYPE: text/plain\r\n", "hello")};
  });
  HttpClient client(quick());
  const auto response = client.send(
      [&] {
        return HttpRequest{.url = server.url(), .headers = {{"X-Mine", "1"}}};
      },
      100);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "hello");
  EXPECT_EQ(response->etag, "\"e\"");
  EXPECT_EQ(response->last_modified, "then");
  EXPECT_EQ(response->content_type, "text/plain");
  EXPECT_EQ(response->content_length, 5u);
}

TEST(HttpClientTest, AHeadHasALengthAndNoBody) {
  TestServer server([](const TestRequest& request) {
    EXPECT_EQ(request.method, "HEAD");
    return TestReply{"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n"};
  });
  HttpClient client(quick());
  for (int i = 0; i < 2; ++i) {
    const auto response = client.send([&] { return HttpRequest{.method = "HEAD", .url = server.url()}; }, 0);
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->content_length, 12345u);
  }
  EXPECT_EQ(server.connections(), 1u) << "the connection is used again";
}

TEST(HttpClientTest, WhatMayPassIsAskedAgainWithANewRequest) {
  for (const int status : {408, 429, 500, 502, 503, 504}) {
    TestServer server([&](const TestRequest& request) {
      EXPECT_EQ(request.target, fmt::format("/{}", request.number));
      return TestReply{http_reply(request.number < 3 ? status : 200, "", "x")};
    });
    HttpClient client(quick());
    unsigned made = 0;
    const auto response = client.send([&] { return HttpRequest{.url = server.url(fmt::format("/{}", ++made))}; }, 100);
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->status, 200) << status;
    EXPECT_EQ(made, 3u);
  }
}

TEST(HttpClientTest, TheLastAnswerIsReturnedWhenItDoesNotPass) {
  TestServer server([](const TestRequest&) { return TestReply{http_reply(503, "Retry-After: 3600\r\n", "busy")}; });
  HttpClient client(quick());
  const Time began = now();
  const auto response = get(client, server.url());
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 503);
  EXPECT_EQ(response->body, "busy");
  EXPECT_EQ(server.requests(), 3u);
  EXPECT_GE(now() - began, Duration(40ms)) << "the server asked for a pause";
}

TEST(HttpClientTest, OtherStatusesAreReturnedAtOnce) {
  for (const int status : {204, 400, 403, 404, 416, 501}) {
    TestServer server([&](const TestRequest&) { return TestReply{http_reply(status, "", "")}; });
    HttpClient client(quick());
    const auto response = get(client, server.url());
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->status, status);
    EXPECT_EQ(server.requests(), 1u);
  }
}

TEST(HttpClientTest, ResetsAndShortBodiesAreAskedAgainThenAnError) {
  for (const bool reset : {false, true}) {
    TestServer server([&](const TestRequest& request) {
      if (request.number == 3) return TestReply{http_reply(200, "", "whole")};
      return TestReply{.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwh", .close = !reset, .reset = reset};
    });
    HttpClient client(quick());
    const auto response = get(client, server.url());
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->body, "whole");
    const auto failed = get(client, server.url());
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code, Code::kIo);
    EXPECT_TRUE(has(failed.error().message, "3 attempts")) << failed.error().message;
  }
}

TEST(HttpClientTest, ASilentServerIsATimeout) {
  TestServer server([](const TestRequest&) { return TestReply{.bytes = http_reply(200, "", "x"), .delay = 20s}; });
  HttpClient client(quick(1));
  const auto response = get(client, server.url());
  ASSERT_FALSE(response.ok());
  EXPECT_TRUE(has(response.error().message, "does not answer in time")) << response.error().message;
}

TEST(HttpClientTest, ARedirectIsAnErrorThatNamesWhereItLeads) {
  TestServer server([](const TestRequest&) {
    return TestReply{http_reply(302, "Location: http://user:secret@elsewhere.example/x?token=1\r\n", "")};
  });
  HttpClient client(quick());
  const auto response = get(client, server.url());
  ASSERT_FALSE(response.ok());
  EXPECT_TRUE(has(response.error().message, "elsewhere.example")) << response.error().message;
  EXPECT_FALSE(has(response.error().message, "secret")) << response.error().message;
  EXPECT_EQ(server.requests(), 1u);
}

TEST(HttpClientTest, BodiesAndHeadsAreBounded) {
  TestServer server([](const TestRequest& request) {
    if (request.target == "/long") return TestReply{http_reply(200, "", std::string(1001, 'x'))};
    if (request.target == "/endless") return TestReply{"HTTP/1.1 200 OK\r\n\r\n" + std::string(1 << 20, 'x')};
    std::string headers;
    for (int i = 0; i < 100; ++i) headers += fmt::format("X-{}: {}\r\n", i, std::string(1000, 'h'));
    return TestReply{http_reply(200, headers, "")};
  });
  HttpClient client(quick());
  for (const char* path : {"/long", "/endless", "/headers"}) {
    const auto response = get(client, server.url(path), 1000);
    ASSERT_FALSE(response.ok()) << path;
  }
  EXPECT_TRUE(get(client, server.url("/long"), 1001).ok());
}

TEST(HttpClientTest, EncodedContentIsRefused) {
  TestServer server([](const TestRequest& request) {
    EXPECT_EQ(request.headers.count("accept-encoding"), 0u);
    return TestReply{http_reply(200, "Content-Encoding: gzip\r\n", "x")};
  });
  HttpClient client(quick());
  const auto response = get(client, server.url());
  ASSERT_FALSE(response.ok());
  EXPECT_TRUE(has(response.error().message, "gzip")) << response.error().message;
}

TEST(HttpClientTest, EachFailureOfTheTransportHasItsOwnWordsAndNoSecrets) {
  HttpClient client(quick(2));
  const auto said = [&](const std::string& url) {
    const auto response = get(client, url);
    return response.ok() ? "ok" : response.error().message;
  };
  const std::string refused = said("http://user:secret@127.0.0.1:1/x?X-Amz-Signature=secret");
  EXPECT_TRUE(has(refused, "http://127.0.0.1:1/x: after 2 attempts: no connection")) << refused;
  EXPECT_FALSE(has(refused, "secret")) << refused;
  const std::string unknown = said("http://no-such-host.invalid/");
  EXPECT_TRUE(has(unknown, "no-such-host.invalid") && has(unknown, "name")) << unknown;
  for (const char* url : {"file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "nonsense://x", "http://"}) {
    EXPECT_TRUE(has(said(url), "http:// and https://")) << url;
  }
}

TEST(HttpClientTest, ManyThreadsShareOne) {
  TestServer server([](const TestRequest& request) { return TestReply{http_reply(200, "", request.target)}; });
  HttpClient client(quick());
  parallel_for(8, 200, [&](std::uint64_t i) {
    const std::string path = fmt::format("/{}", i);
    const auto response = get(client, server.url(path));
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->body, path);
  });
  EXPECT_LE(server.connections(), 8u);
}

TEST(ContentRangeTest, OnlyCompleteRangesAreUnderstood) {
  EXPECT_EQ(parse_content_range("bytes 0-4/10"), (ContentRange{0, 4, 10}));
  EXPECT_EQ(parse_content_range("bytes 9-9/10"), (ContentRange{9, 9, 10}));
  for (const char* text :
       {"", "bytes", "bytes ", "bytes 0-4", "bytes 0-4/*", "bytes */10", "bytes 5-4/10", "bytes 0-10/10", "bytes -4/10",
        "bytes 0-/10", "bytes 0-4/10 ", "bytes 0-4/10,", "bytes  0-4/10", "items 0-4/10",
        "bytes 0-4/99999999999999999999999", "bytes 0x0-4/10", "bytes +0-4/10"}) {
    EXPECT_FALSE(parse_content_range(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace foreload
