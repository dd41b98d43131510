#include "store/object_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "base/clock.h"
#include "base/hash.h"
#include "base/random.h"
#include "store/http_server_testing.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

// Bytes that differ from place to place.
std::string content_of(Bytes size) {
  std::string content(size, '\0');
  for (Bytes at = 0; at < size; ++at) content[at] = static_cast<char>(mix64(at / 8) >> (8 * (at % 8)));
  return content;
}

FileStamp stamp_with(Bytes size, const std::string& etag = "\"v1\"") {
  HttpResponse response;
  response.content_length = size;
  response.etag = etag;
  return stamp_of(response);
}

ObjectReaderOptions quick() {
  return {.http = {.connect_timeout = 2s,
                   .stall_timeout = 1s,
                   .retry = {.attempts = 6, .first_pause = 1ms, .longest_pause = 10ms, .longest_asked = 20ms}}};
}

// A reader, a store, and jobs whose bytes are compared with the content.
class Reading {
 public:
  Reading(TestServer& server, std::string content, const ObjectReaderOptions& options = quick())
      : store_(server.url()), content_(std::move(content)), expect_(stamp_with(content_.size())) {
    auto started = ObjectReader::start(options, counters_, [this] {
      MutexLock lock(mutex_);
      woken_ = true;
      changed_.notify_all();
    });
    reader_ = std::move(*started);
  }

  void expect(const FileStamp& stamp) { expect_ = stamp; }

  void want(Bytes offset, Bytes length, std::uint64_t object = 0) {
    wanted_.push_back({offset, std::string(length, '\x55')});
    Wanted& wanted = wanted_.back();
    queued_.push_back({.tag = wanted_.size() - 1,
                       .store = &store_,
                       .key = "object",
                       .object = object,
                       .offset = offset,
                       .into = std::as_writable_bytes(std::span(wanted.bytes.data(), wanted.bytes.size())),
                       .expect = expect_});
  }
  void submit() {
    reader_->submit(queued_);
    queued_.clear();
  }
  // Of all jobs that were ever wanted, by tag.
  std::vector<ObjectResult> wait(Duration patience = 30s) {
    const Time deadline = now() + patience;
    while (results_.size() < wanted_.size() && now() < deadline) {
      {
        MutexLock lock(mutex_);
        while (!woken_ && now() < deadline) changed_.wait_until(mutex_, deadline);
        woken_ = false;
      }
      reader_->take(results_);
    }
    EXPECT_EQ(results_.size(), wanted_.size()) << "not all jobs have ended";
    std::sort(results_.begin(), results_.end(), [](const auto& a, const auto& b) { return a.tag < b.tag; });
    return results_;
  }
  std::vector<ObjectResult> read() {
    submit();
    return wait();
  }
  void expect_all_right() {
    for (const ObjectResult& result : read()) {
      ASSERT_EQ(result.outcome, ReadOutcome::kDone) << result.error.message;
      const Wanted& wanted = wanted_[result.tag];
      ASSERT_EQ(wanted.bytes, content_.substr(wanted.offset, wanted.bytes.size())) << "job " << result.tag;
    }
  }

  ObjectReader& reader() { return *reader_; }
  ObjectStats stats() const { return counters_.read(); }
  void end() { reader_.reset(); }

 private:
  struct Wanted {
    Bytes offset;
    std::string bytes;
  };

  TestStore store_;
  std::string content_;
  FileStamp expect_;
  ObjectCounters counters_;
  Mutex mutex_;
  CondVar changed_;
  bool woken_ FORELOAD_GUARDED_BY(mutex_) = false;
  std::deque<Wanted> wanted_;
  std::vector<ObjectJob> queued_;
  std::vector<ObjectResult> results_;
  std::unique_ptr<ObjectReader> reader_;
};

const std::string kContent = content_of(3'000'000);

TestServer::Handler plain() {
  return [](const TestRequest& request) { return TestReply{object_reply(request, kContent)}; };
}

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
  EXPECT_LE(server.connections(), 64u);
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

TEST(ObjectReaderTest, AnswersThatEndEarlyNeverCount) {
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

TEST(ObjectReaderTest, LongerBodiesThanPromisedNeverCount) {
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

TEST(ObjectReaderTest, OtherBytesThanThoseAskedForAreRefused) {
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

TEST(ObjectReaderTest, AWholeObjectInsteadOfAPartIsRefused) {
  const ObjectResult result = failure([](const TestRequest&) { return http_reply(200, "ETag: \"v1\"\r\n", kContent); });
  EXPECT_EQ(result.outcome, ReadOutcome::kFailed);
  EXPECT_NE(result.error.message.find("ignores ranges"), std::string::npos) << result.error.message;
}

TEST(ObjectReaderTest, AWholeObjectIsTakenWhenAllOfItWasWanted) {
  TestServer server([](const TestRequest&) { return TestReply{http_reply(200, "ETag: \"v1\"\r\n", kContent)}; });
  Reading reading(server, kContent);
  reading.want(0, kContent.size());
  reading.expect_all_right();
}

TEST(ObjectReaderTest, AChangedObjectIsReportedWithWhatWasFound) {
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

TEST(ObjectReaderTest, OneWrongAnswerAmongRightOnesDoesNotEndARun) {
  TestServer server([](const TestRequest& request) {
    return TestReply{object_reply(request, kContent, request.number == 1 ? "\"other\"" : "\"v1\"")};
  });
  Reading reading(server, kContent);
  reading.want(5, 5000);
  reading.expect_all_right();
  EXPECT_EQ(server.requests(), 2u);
}

TEST(ObjectReaderTest, WithoutAValidatorTheSizeCounts) {
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

TEST(ObjectReaderTest, ErrorsNameTheObjectTheAttemptsAndTheReason) {
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

// R17 in small, with the chances of a seed.
TEST(ObjectReaderTest, UnderManyKindsOfFaultsEveryByteIsRight) {
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
