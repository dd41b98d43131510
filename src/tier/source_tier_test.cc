#include "tier/source_tier.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/test_folder.h"
#include "policy/replay.h"
#include "store/http_server_testing.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Bytes kLength = 5000;

std::string content_of(SampleId id) {
  return std::string(kLength, static_cast<char>('a' + id % 26));
}

// Samples are objects of one store: /0, /1, …
class ObjectSource : public Source {
 public:
  ObjectSource(const std::string& url, std::uint64_t count) : store_(url), uri_(url), count_(count) {}

  std::uint64_t size() const override { return count_; }
  Bytes length(SampleId) const override { return kLength; }
  std::int64_t label(SampleId) const override { return 0; }
  std::string key(SampleId id) const override { return std::to_string(id); }
  Extent locate(SampleId id) const override {
    HttpResponse indexed;
    indexed.content_length = kLength;
    indexed.etag = "\"v1\"";
    return {.store = &store_,
            .path = key(id),
            .display = store_.display(key(id)),
            .file = id,
            .length = kLength,
            .stamp = stamp_of(indexed)};
  }
  std::optional<Dimensions> dimensions(SampleId) const override { return std::nullopt; }
  const std::string& uri() const override { return uri_; }
  std::vector<std::string> classes() const override { return {}; }
  Bytes total_bytes() const override { return count_ * kLength; }
  Bytes max_length() const override { return kLength; }
  std::uint64_t fingerprint() const override { return 1; }

 private:
  TestStore store_;
  std::string uri_;
  std::uint64_t count_;
};

TestReply whole(const TestRequest& request, const std::string& etag = "\"v1\"") {
  return {object_reply(request, content_of(std::stoull(request.target.substr(1))), etag)};
}

// A tier over such a source, and the memory that it reads into.
class Tier {
 public:
  Tier(const TestServer& server, std::uint64_t count, const std::string& storage = "")
      : source_(server.url(), count), memory_(count, std::string(kLength, '\0')) {
    std::optional<Throttle> throttle;
    if (!storage.empty()) throttle = std::move(*Throttle::open(storage));
    SourceTierOptions options;
    options.objects.http.retry = {.attempts = 5, .first_pause = 1ms, .longest_pause = 5ms};
    tier_ = std::make_unique<SourceTier>(source_, std::move(*open_read_engine({})), std::move(throttle), options);
  }

  SourceTier& operator*() { return *tier_; }
  SourceTier* operator->() { return tier_.get(); }
  const std::string& bytes(SampleId id) const { return memory_[id]; }
  void start(SampleId id) { tier_->start(id, std::as_writable_bytes(std::span(memory_[id])), now()); }
  std::vector<SourceRead> wait_all() {
    std::vector<SourceRead> reads;
    const Time deadline = now() + 30s;
    while (tier_->in_flight() > 0 && now() < deadline) tier_->wait(reads, deadline);
    EXPECT_EQ(tier_->in_flight(), 0u);
    return reads;
  }

 private:
  ObjectSource source_;
  std::vector<std::string> memory_;
  std::unique_ptr<SourceTier> tier_;
};

TEST(SourceTierTest, ObjectsComeAsFilesDo) {
  TestServer server([](const TestRequest& request) {
    return request.number % 5 == 0 ? TestReply{http_reply(503, "", "")} : whole(request);
  });
  Tier tier(server, 50);
  for (SampleId id = 0; id < 50; ++id) tier.start(id);
  EXPECT_EQ(tier->in_flight(), 50u);
  const auto reads = tier.wait_all();
  ASSERT_EQ(reads.size(), 50u);
  unsigned retries = 0;
  for (const SourceRead& read : reads) {
    ASSERT_TRUE(read.status.ok()) << read.status.error().message;
    EXPECT_EQ(tier.bytes(read.id), content_of(read.id));
    retries += read.retries;
  }
  EXPECT_EQ(retries, tier->object_stats().retries);
  EXPECT_GT(retries, 0u);
}

TEST(SourceTierTest, WhatIsDecidedAboutRequestsCanBeReplayed) {
  const TestFolder folder;
  TestServer server([](const TestRequest& request) {
    return request.number % 5 == 0 ? TestReply{http_reply(503, "", "")} : whole(request);
  });
  auto record = EventRecord::create(folder.path("record"));
  ASSERT_TRUE(record.ok());
  {
    Tier tier(server, 50);
    tier->record_to(record->get());
    for (SampleId id = 0; id < 50; ++id) tier.start(id);
    (void)tier.wait_all();
  }
  ASSERT_TRUE((*record)->close().ok());
  const auto events = read_event_record(folder.path("record"));
  ASSERT_TRUE(events.ok());
  const ReplayResult result = replay_requests(*events);
  EXPECT_EQ(result.different, 0u) << result.first_difference;
  EXPECT_GE(result.decisions, 3u * 50) << "wanted, sent, done";
}

TEST(SourceTierTest, AnObjectThatChangedOrIsGoneIsNamed) {
  TestServer server([](const TestRequest& request) {
    return request.target == "/0" ? whole(request, "\"v2\"") : TestReply{http_reply(404, "", "")};
  });
  Tier tier(server, 2);
  tier.start(0);
  tier.start(1);
  for (const SourceRead& read : tier.wait_all()) {
    ASSERT_FALSE(read.status.ok());
    EXPECT_EQ(read.status.error().code, Code::kDataChanged);
    const std::string& message = read.status.error().message;
    for (const std::string& word :
         {fmt::format("sample {}", read.id), server.url(fmt::format("/{}", read.id)), std::string("object"),
          std::string("index --rebuild"), std::string(read.id == 0 ? "another tag" : "gone")}) {
      EXPECT_NE(message.find(word), std::string::npos) << word << " in " << message;
    }
  }
}

TEST(SourceTierTest, InAHurryObjectsAreNotWaitedFor) {
  TestServer server([](const TestRequest& request) {
    TestReply reply = whole(request);
    reply.delay = 20'000ms;
    return reply;
  });
  Tier tier(server, 20);
  for (SampleId id = 0; id < 20; ++id) tier.start(id);
  std::vector<SourceRead> none;
  tier->wait(none, now() + 50ms);
  EXPECT_TRUE(none.empty());
  const Time began = now();
  tier->hurry(true);
  for (const SourceRead& read : tier.wait_all()) EXPECT_FALSE(read.status.ok());
  EXPECT_LT(now() - began, Duration(10s));
}

TEST(SourceTierTest, AfterAHurryObjectsAreReadAgain) {
  TestServer server([](const TestRequest& request) { return whole(request); });
  Tier tier(server, 4);
  tier->hurry(true);
  tier.start(0);
  (void)tier.wait_all();
  tier->hurry(false);
  tier.start(1);
  const auto reads = tier.wait_all();
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_TRUE(reads[0].status.ok());
  EXPECT_EQ(tier.bytes(1), content_of(1));
}

TEST(SourceTierTest, EmulatedSlownessHoldsObjectsToo) {
  TestServer server([](const TestRequest& request) { return whole(request); });
  Tier tier(server, 4, "50kB/s");
  const Time began = now();
  for (SampleId id = 0; id < 4; ++id) tier.start(id);
  EXPECT_EQ(tier.wait_all().size(), 4u);
  EXPECT_GE(now() - began, Duration(200ms));
}

}  // namespace
}  // namespace foreload
