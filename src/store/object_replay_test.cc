// What an object reader decided against a server that misbehaves, repeated from its event record.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "base/test_folder.h"
#include "policy/replay.h"
#include "store/object_reader_testing.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSeed = 5;

// How the server behaves; the test changes it between the phases of a run.
enum class Mood { kCalm, kSlow, kBusy, kLying };

TestReply answer(const TestRequest& request, Mood mood) {
  TestReply reply{.bytes = object_reply(request, kContent), .delay = 4ms};
  const std::uint64_t chance = KeyedRandom(kSeed, 0, request.number, 0).below(3);
  if (mood == Mood::kSlow) reply.delay = 3'000ms;
  const bool is_first = request.range(kContent.size()).first == 0;
  if (mood == Mood::kBusy && (is_first || chance > 0))
    return {http_reply(chance == 1 ? 503 : 429, "Retry-After: 1\r\n", "busy")};
  if (mood == Mood::kLying && chance == 0) return {object_reply(request, kContent, "\"other\"")};
  return reply;
}

class ObjectReplayTest : public testing::Test {
 protected:
  // A run in which everything happens that a policy decides about.
  void SetUp() override {
    std::atomic<Mood> mood{Mood::kCalm};
    TestServer server([&](const TestRequest& request) {
      // A hedged request is slow once: its twin is answered.
      Mood slow = Mood::kSlow;
      return answer(request, mood.compare_exchange_strong(slow, Mood::kCalm) ? Mood::kSlow : mood.load());
    });
    auto record = EventRecord::create(path_);
    ASSERT_TRUE(record.ok());
    ObjectReaderOptions options = quick();
    options.http.stall_timeout = 10s;
    options.record = record->get();
    Reading reading(server, kContent, options);
    scatter(reading, 1500);  // the window opens
    reading.expect_all_right();
    mood = Mood::kSlow;
    reading.want(2'500'000, 1000);
    reading.expect_all_right();
    for (Bytes i = 0; i < 100; ++i) reading.want(i * 20'500, 20'000);  // neighbours
    reading.expect_all_right();
    mood = Mood::kLying;
    scatter(reading, 100);
    reading.read();  // from here on some fail for good
    mood = Mood::kBusy;
    scatter(reading, 100);
    reading.read();
    mood = Mood::kCalm;
    scatter(reading, 50);
    reading.submit();
    reading.reader().hurry(true);
    reading.wait();
    stats_ = reading.stats();
    reading.end();
    ASSERT_TRUE((*record)->close().ok());
    auto read = read_event_record(path_);
    ASSERT_TRUE(read.ok()) << read.error().message;
    events_ = std::move(*read);
  }

  static void scatter(Reading& reading, Bytes ranges) {
    for (Bytes i = 0; i < ranges; ++i) reading.want(i % 290 * 10'000, 500, i / 290);
  }

  std::size_t count(EventKind kind) const {
    return static_cast<std::size_t>(
        std::count_if(events_.begin(), events_.end(), [&](const Event& event) { return event.kind == kind; }));
  }
  Event& some(EventKind kind, std::size_t number) {
    for (Event& event : events_) {
      if (event.kind == kind && number-- == 0) return event;
    }
    ADD_FAILURE() << "no such event";
    return events_.front();
  }
  // What is said when one number of the record is another.
  std::string altered(Event& event, std::uint64_t Event::*field) {
    event.*field += 1;
    const ReplayResult result = replay_requests(events_);
    event.*field -= 1;
    EXPECT_EQ(result.different, 1u);
    return result.first_difference;
  }

  const TestFolder folder_;
  const std::string path_ = folder_.path("record");
  ObjectStats stats_{};
  std::vector<Event> events_;
};

TEST_F(ObjectReplayTest, TheRecordOfARunGivesTheSameDecisions) {
  const ReplayResult result = replay_requests(events_);
  EXPECT_EQ(result.different, 0u) << result.first_difference;
  EXPECT_EQ(result.decisions % 4, 0u);
  EXPECT_GT(result.decisions, 4 * stats_.requests);
  // All of it is in the record.
  EXPECT_GT(stats_.hedges, 0u);
  EXPECT_GT(stats_.throttled, 0u);
  EXPECT_EQ(count(EventKind::kHedged), stats_.hedges);
  EXPECT_EQ(count(EventKind::kThrottled), stats_.throttled);
  EXPECT_EQ(count(EventKind::kSentAgain), stats_.retries);
  EXPECT_GT(count(EventKind::kStopped), 0u);
  EXPECT_EQ(count(EventKind::kRequests), 1u);
  unsigned widest = 0;
  unsigned narrowest = 128;
  Bytes ranges = 0;
  std::size_t given_up = 0;
  for (const Event& event : events_) {
    if (event.kind == EventKind::kRequestDone) widest = std::max(widest, static_cast<unsigned>(event.c));
    if (event.kind == EventKind::kThrottled) narrowest = std::min(narrowest, static_cast<unsigned>(event.c));
    if (event.kind == EventKind::kGrouped) ranges = std::max<Bytes>(ranges, event.a & 0xffffffff);
    if (event.kind == EventKind::kPaused && event.c == ~0ull >> 1) ++given_up;
  }
  EXPECT_GT(widest, 16u);
  EXPECT_LT(narrowest, widest);
  EXPECT_GT(ranges, 10u) << "neighbours share requests";
  EXPECT_GT(given_up, 0u);
}

TEST_F(ObjectReplayTest, EveryAlteredDecisionIsNamed) {
  const struct {
    EventKind kind;
    std::uint64_t Event::*field;
    const char* name;
  } decisions[] = {
      {EventKind::kGrouped, &Event::position, "a group"},
      {EventKind::kGrouped, &Event::a, "running << 32 | ranges"},
      {EventKind::kGrouped, &Event::c, "length of a group"},
      {EventKind::kHedged, &Event::c, "delay of a second request"},
      {EventKind::kRequestDone, &Event::c, "window"},
      {EventKind::kRequestDone, &Event::position, "delay of second requests"},
      {EventKind::kStopped, &Event::position, "delay of second requests"},
      {EventKind::kThrottled, &Event::c, "window after a complaint"},
      {EventKind::kPaused, &Event::c, "pause"},
      {EventKind::kSentAgain, &Event::position, "a group sent again"},
  };
  for (const auto& decision : decisions) {
    const std::size_t last = count(decision.kind) - 1;
    for (const std::size_t number : {std::size_t{0}, last / 2, last}) {
      const std::string said = altered(some(decision.kind, number), decision.field);
      EXPECT_NE(said.find(fmt::format(" ns, {}: the run had", decision.name)), std::string::npos) << said;
    }
  }
}

TEST_F(ObjectReplayTest, DecisionsThatWereNotTakenAreNoticed) {
  const auto without = [&](EventKind kind) {
    std::vector<Event> events = events_;
    const auto gone = std::find_if(events.begin(), events.end(), [&](const Event& e) { return e.kind == kind; });
    events.erase(gone);
    return replay_requests(events);
  };
  for (const EventKind kind : {EventKind::kGrouped, EventKind::kSentAgain, EventKind::kPaused}) {
    EXPECT_GT(without(kind).different, 0u) << static_cast<int>(kind);
  }
  // A second request when nothing was known yet, and one more than the window allows.
  std::vector<Event> events = events_;
  Event early = some(EventKind::kHedged, 0);
  const auto first = std::find_if(events.begin(), events.end(),
                                  [](const Event& event) { return event.kind == EventKind::kRequestDone; });
  early.time = first->time;
  events.insert(first, early);
  EXPECT_NE(replay_requests(events).first_difference.find("a second request: the run had one, the replay none"),
            std::string::npos);
  Event& crowded = some(EventKind::kGrouped, 0);
  crowded.a += std::uint64_t{16} << 32;
  EXPECT_NE(replay_requests(events_).first_difference.find("a request: the run had one, the replay none"),
            std::string::npos);
}

}  // namespace
}  // namespace foreload
