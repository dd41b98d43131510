// What a store may answer, and what of it is believed.
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/random.h"
#include "store/object_reader_testing.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

TEST(ObjectTrustTest, AnswersThatEndEarlyNeverCount) {
  for (const bool reset : {false, true}) {
    TestServer server([&](const TestRequest& request) {
      TestReply reply{object_reply(request, kContent)};
      if (request.number % 2 == 0) return reply;
      reply.bytes.resize(reply.bytes.size() - 1);
      reply.close = !reset;
      reply.reset = reset;
      return reply;
    });
    Reading reading(server, kContent);
    for (Bytes i = 0; i < 10; ++i) reading.want(i * 200'000, 100'000);
    reading.expect_all_right();
    EXPECT_GE(reading.stats().retries, 1u);
  }
}

TEST(ObjectTrustTest, ARightHeadWithoutABodyNeverCounts) {
  TestServer server([&](const TestRequest& request) {
    if (request.number == 3) return TestReply{object_reply(request, kContent)};
    const std::string head = fmt::format("ETag: \"v1\"\r\nContent-Range: bytes 0-9/{}\r\n", kContent.size());
    if (request.number == 1) return TestReply{http_reply(206, head, "")};
    return TestReply{.bytes = fmt::format("HTTP/1.1 206 Partial\r\nContent-Length: 10\r\n{}\r\n", head), .close = true};
  });
  Reading reading(server, kContent);
  reading.want(0, 10);
  reading.expect_all_right();
  EXPECT_EQ(server.requests(), 3u);
}

TEST(ObjectTrustTest, LongerBodiesThanPromisedNeverCount) {
  TestServer server([&](const TestRequest& request) {
    if (request.number == 2) return TestReply{object_reply(request, kContent)};
    // Without a length the body ends with the connection.
    return TestReply{
        .bytes = fmt::format("HTTP/1.1 206 Partial\r\nETag: \"v1\"\r\nContent-Range: bytes 0-9/{}\r\n\r\n{}",
                             kContent.size(), kContent.substr(0, 11)),
        .close = true};
  });
  Reading reading(server, kContent);
  reading.want(0, 10);
  reading.expect_all_right();
  EXPECT_EQ(server.requests(), 2u);
}

// Every answer is wrong in the same way; the error has to say so, and no byte may be touched.
ObjectResult failure(const std::function<std::string(const TestRequest&)>& answer) {
  TestServer server([&](const TestRequest& request) { return TestReply{answer(request)}; });
  Reading reading(server, kContent);
  reading.want(1000, 500);
  const auto results = reading.read();
  EXPECT_NE(results.at(0).outcome, ReadOutcome::kDone);
  return results.at(0);
}

TEST(ObjectTrustTest, OtherBytesThanThoseAskedForAreRefused) {
  const auto with_range = [](const std::string& range) {
    return failure([&](const TestRequest&) {
      return http_reply(206, "ETag: \"v1\"\r\nContent-Range: " + range + "\r\n", std::string(500, 'x'));
    });
  };
  for (const std::string range : {"bytes 1001-1500/3000000", "bytes 1000-1498/3000000", "bytes 0-499/3000000",
                                  "bytes */5", "bytes 1000-1499/*", "nonsense", ""}) {
    const ObjectResult result = with_range(range);
    EXPECT_EQ(result.outcome, ReadOutcome::kFailed) << range;
    EXPECT_NE(result.error.message.find("other bytes"), std::string::npos) << result.error.message;
    EXPECT_EQ(result.attempts, 4u);
  }
}

TEST(ObjectTrustTest, AWholeObjectInsteadOfAPartIsRefused) {
  const ObjectResult result = failure([](const TestRequest&) { return http_reply(200, "ETag: \"v1\"\r\n", kContent); });
  EXPECT_EQ(result.outcome, ReadOutcome::kFailed);
  EXPECT_NE(result.error.message.find("ignores ranges"), std::string::npos) << result.error.message;
}

TEST(ObjectTrustTest, AWholeObjectIsTakenWhenAllOfItWasWanted) {
  TestServer server([](const TestRequest&) { return TestReply{http_reply(200, "ETag: \"v1\"\r\n", kContent)}; });
  Reading reading(server, kContent);
  reading.want(0, kContent.size());
  reading.expect_all_right();
}

TEST(ObjectTrustTest, AChangedObjectIsReportedWithWhatWasFound) {
  const ObjectResult tag =
      failure([](const TestRequest& request) { return object_reply(request, kContent, "\"v2\""); });
  EXPECT_EQ(tag.outcome, ReadOutcome::kChanged);
  EXPECT_EQ(tag.found, stamp_with(kContent.size(), "\"v2\""));
  const ObjectResult size =
      failure([](const TestRequest& request) { return object_reply(request, kContent + "longer"); });
  EXPECT_EQ(size.outcome, ReadOutcome::kChanged);
  EXPECT_EQ(size.found.size, kContent.size() + 6);
  const ObjectResult shorter =
      failure([](const TestRequest&) { return http_reply(416, "Content-Range: bytes */900\r\n", ""); });
  EXPECT_EQ(shorter.outcome, ReadOutcome::kChanged);
  EXPECT_EQ(shorter.found.size, 900u);
  EXPECT_EQ(failure([](const TestRequest&) { return http_reply(412, "", ""); }).outcome, ReadOutcome::kChanged);
  const ObjectResult untagged = failure([](const TestRequest&) {
    return http_reply(206, "Content-Range: bytes 1000-1499/3000000\r\n", std::string(500, 'x'));
  });
  EXPECT_EQ(untagged.outcome, ReadOutcome::kChanged);
}

TEST(ObjectTrustTest, OneWrongAnswerAmongRightOnesDoesNotEndARun) {
  TestServer server([](const TestRequest& request) {
    return TestReply{object_reply(request, kContent, request.number == 1 ? "\"other\"" : "\"v1\"")};
  });
  Reading reading(server, kContent);
  reading.want(5, 5000);
  reading.expect_all_right();
  EXPECT_EQ(server.requests(), 2u);
}

TEST(ObjectTrustTest, WithoutAValidatorTheSizeCounts) {
  TestServer server([](const TestRequest& request) {
    const auto [first, last] = request.range(kContent.size());
    return TestReply{http_reply(206, fmt::format("Content-Range: bytes {}-{}/{}\r\n", first, last, kContent.size()),
                                kContent.substr(first, last - first + 1))};
  });
  Reading reading(server, kContent);
  reading.expect({.size = kContent.size(), .mtime_ns = 0});
  reading.want(5, 5000);
  reading.expect_all_right();
}

TEST(ObjectTrustTest, ErrorsNameTheObjectTheAttemptsAndTheReason) {
  const auto says = [](int status, const std::string& headers, const std::string& body) {
    return failure([&](const TestRequest&) { return http_reply(status, headers, body); }).error;
  };
  const auto expect_words = [](const Error& error, Code code, std::vector<std::string> words) {
    EXPECT_EQ(error.code, code) << error.message;
    words.push_back("/object");
    for (const std::string& word : words) {
      EXPECT_NE(error.message.find(word), std::string::npos) << word << " in " << error.message;
    }
  };
  expect_words(says(404, "", ""), Code::kDataChanged, {"gone", "1 attempt"});
  expect_words(says(403, "", "why"), Code::kIo, {"403", "denies access", "1 attempt"});
  expect_words(says(503, "", ""), Code::kIo, {"503", "6 attempts"});
  expect_words(says(301, "Location: https://other.example/\r\n", ""), Code::kIo,
               {"301", "other.example", "bytes 1000-1499"});
  expect_words(says(418, "", ""), Code::kIo, {"418"});
  const std::string gzip = "ETag: \"v1\"\r\nContent-Encoding: gzip\r\nContent-Range: bytes 1000-1499/3000000\r\n";
  expect_words(says(206, gzip, std::string(500, 'x')), Code::kIo, {"gzip"});
}

// R17 in small, with the chances of a seed.
TEST(ObjectTrustTest, UnderManyKindsOfFaultsEveryByteIsRight) {
  const std::uint64_t seed = 17;
  TestServer server([&](const TestRequest& request) {
    KeyedRandom random(seed, 0, request.number, 0);
    TestReply reply{object_reply(request, kContent)};
    const std::size_t size = reply.bytes.size();
    switch (random.below(40)) {
      case 0:
        return TestReply{http_reply(503, "", "busy")};
      case 1:
        return TestReply{http_reply(500, "", "broken")};
      case 2:
        reply.bytes.resize(size - 1 - random.below(size / 2));
        reply.reset = true;
        return reply;
      case 3:
        reply.bytes.resize(size - 1 - random.below(size / 2));
        reply.close = true;
        return reply;
      case 4:
        reply.bytes = object_reply(request, kContent, "\"wrong\"");
        return reply;
      case 5:
        reply.delay = 30ms;
        return reply;
      default:
        return reply;
    }
  });
  ObjectReaderOptions options = quick();
  options.http.retry.attempts = 10;
  Reading reading(server, kContent, options);
  KeyedRandom random(seed, 1, 0, 0);
  Bytes wanted = 0;
  for (int i = 0; i < 500; ++i) {
    const Bytes length = 1 + random.below(20'000);
    reading.want(random.below(kContent.size() - length), length, i % 5);
    wanted += length;
    if (i % 20 == 0) reading.submit();
  }
  reading.expect_all_right();
  EXPECT_LE(static_cast<double>(reading.stats().bytes), 1.5 * static_cast<double>(wanted)) << "seed " << seed;
}

}  // namespace
}  // namespace foreload
