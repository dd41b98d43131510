#include "lab/chrome_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "policy/replay.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

std::string trace_of(const std::vector<Event>& events, std::string_view name = "run", Time zero = Time{}) {
  std::string text;
  ChromeTrace trace([&](std::string_view part) {
    text += part;
    return Status();
  });
  trace.add(events, name, zero);
  EXPECT_TRUE(trace.finish().ok());
  return text;
}

std::int64_t nanoseconds(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

// Spans of every track begin in rising order, and each lies inside of the one that is open, or behind it.
void expect_nesting(const Json& trace) {
  std::map<std::pair<int, std::int64_t>, std::vector<std::pair<std::int64_t, std::int64_t>>> open;
  std::map<std::pair<int, std::int64_t>, std::int64_t> last;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const std::pair track{event["pid"].get<int>(), event["tid"].get<std::int64_t>()};
    const std::int64_t from = nanoseconds(event["ts"]);
    const std::int64_t to = from + nanoseconds(event["dur"]);
    ASSERT_GE(from, last[track]) << event;
    last[track] = from;
    auto& stack = open[track];
    while (!stack.empty() && stack.back().second <= from) stack.pop_back();
    if (!stack.empty()) {
      ASSERT_LE(to, stack.back().second) << event;
    }
    stack.emplace_back(from, to);
  }
}

std::vector<Json> spans(const Json& trace, const std::string& name) {
  std::vector<Json> found;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["name"] == name) found.push_back(event);
  }
  return found;
}

std::string track_name(const Json& trace, const Json& tid) {
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name" && event["tid"] == tid) return event["args"]["name"];
  }
  return {};
}

Event read(EventKind kind, Time at, SampleId id, Origin origin = Origin::kSource) {
  const std::uint64_t fields = ReadFields{origin, origin, false, 0}.pack();
  Event event{.time = at, .kind = kind, .a = id, .b = 10};
  (kind == EventKind::kReadStarted ? event.c : event.position) = fields;
  return event;
}

TEST(ChromeTraceTest, ABatchIsPreparedThenReady) {
  const Json trace = Json::parse(trace_of({
      {.time = 10us, .kind = EventKind::kSlotOpened, .epoch = 2, .a = 5, .b = 1, .c = 64},
      {.time = 30us, .kind = EventKind::kPublished, .epoch = 2, .a = 5, .b = 1},
      {.time = 45us, .kind = EventKind::kDelivered, .epoch = 2, .a = 5, .b = 1},
  }));
  ASSERT_EQ(spans(trace, "batch").size(), 1u);
  const Json batch = spans(trace, "batch")[0];
  EXPECT_EQ(nanoseconds(batch["ts"]), 10'000);
  EXPECT_EQ(nanoseconds(batch["dur"]), 35'000);
  EXPECT_EQ(batch["args"]["step"], 5);
  EXPECT_EQ(track_name(trace, batch["tid"]), "ring slot 1");
  EXPECT_EQ(nanoseconds(spans(trace, "is prepared").at(0)["dur"]), 20'000);
  EXPECT_EQ(nanoseconds(spans(trace, "is ready").at(0)["ts"]), 30'000);
  expect_nesting(trace);
}

TEST(ChromeTraceTest, AWaitIsForBytesAndThenForPrep) {
  const Json trace = Json::parse(trace_of({
      {.time = 100us, .kind = EventKind::kWaited, .a = 0, .b = 60'000, .c = 30'000},
      {.time = 200us, .kind = EventKind::kWaited, .a = 1, .b = 0, .c = 20'000},
      {.time = 250us, .kind = EventKind::kWaited, .a = 2},
  }));
  EXPECT_EQ(spans(trace, "waits").size(), 2u);
  EXPECT_EQ(nanoseconds(spans(trace, "for bytes").at(0)["ts"]), 10'000);
  EXPECT_EQ(spans(trace, "for prep").size(), 2u);
  const auto steps = spans(trace, "step");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(nanoseconds(steps[0]["ts"]), 100'000);
  EXPECT_EQ(nanoseconds(steps[0]["dur"]), 80'000);
  EXPECT_EQ(nanoseconds(steps[1]["dur"]), 50'000);
  expect_nesting(trace);
}

TEST(ChromeTraceTest, ReadsThatOverlapHaveTracksOfTheirOwn) {
  const Json trace = Json::parse(trace_of({
      read(EventKind::kReadStarted, 10us, 1), read(EventKind::kReadStarted, 20us, 2),
      read(EventKind::kReadStarted, 20us, 3, Origin::kDisk), read(EventKind::kReadDone, 40us, 2),
      read(EventKind::kReadStarted, 45us, 4),  // where 2 was
      read(EventKind::kReadDone, 50us, 3, Origin::kDisk), read(EventKind::kReadDone, 60us, 1),
      read(EventKind::kReadDone, 70us, 4), read(EventKind::kReadDone, 80us, 99),  // its beginning is not in the record
  }));
  std::map<std::uint64_t, std::string> track;
  for (const Json& span : spans(trace, "read")) track[span["args"]["id"]] = track_name(trace, span["tid"]);
  ASSERT_EQ(track.size(), 4u);
  EXPECT_EQ(track[1], "read from source 1");
  EXPECT_EQ(track[2], "read from source 2");
  EXPECT_EQ(track[3], "read from disk 1");
  EXPECT_EQ(track[4], "read from source 2");
  expect_nesting(trace);
}

TEST(ChromeTraceTest, EveryThreadThatPreparesHasATrack) {
  const Json trace = Json::parse(trace_of({
      {.time = 10us, .kind = EventKind::kPrepDone, .thread = 1, .a = 7, .b = 5'000},
      {.time = 12us, .kind = EventKind::kPrepDone, .thread = 2, .a = 8, .b = 9'000},
      {.time = 15us, .kind = EventKind::kPrepDone, .thread = 1, .a = 9, .b = 50'000},  // longer than can be
  }));
  const auto preps = spans(trace, "prep");
  ASSERT_EQ(preps.size(), 3u);
  EXPECT_EQ(track_name(trace, preps[0]["tid"]), "prep thread 1");
  EXPECT_EQ(track_name(trace, preps[1]["tid"]), "prep thread 2");
  EXPECT_EQ(nanoseconds(preps[2]["ts"]), 10'000);
  expect_nesting(trace);
}

TEST(ChromeTraceTest, NamesAreEscapedAndTimesAreSinceZero) {
  const std::string name = "a \"b\"\n\xff </script>";
  const Json trace =
      Json::parse(trace_of({{.time = 1'000'000us, .kind = EventKind::kPrepDone, .b = 1'500}}, name, 999'990us));
  EXPECT_EQ(trace["traceEvents"][0]["name"], "process_name");
  EXPECT_NE(trace["traceEvents"][0]["args"]["name"].get<std::string>().find("\"b\"\n"), std::string::npos);
  EXPECT_EQ(nanoseconds(spans(trace, "prep").at(0)["ts"]), 8'500);
}

TEST(ChromeTraceTest, ARecordWithoutSpansIsValid) {
  EXPECT_TRUE(Json::parse(trace_of({})).is_object());
}

TEST(ChromeTraceTest, WhateverTheRecordSaysSpansNestAndTheTextIsJson) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Event> events;
    for (int i = 0; i < 400; ++i) {
      const auto few = [&](std::uint64_t below) { return random() % 50 == 0 ? random() : random() % below; };
      events.push_back({.time = Time(static_cast<std::int64_t>(random() % 1'000'000)),
                        .kind = EventKind(1 + random() % 36),
                        .thread = static_cast<std::uint16_t>(random() % 3),
                        .epoch = static_cast<std::uint32_t>(random() % 2),
                        .position = few(4),
                        .a = few(6),
                        .b = few(5'000),
                        .c = few(5'000)});
    }
    std::ranges::stable_sort(events, {}, &Event::time);
    const Json trace = Json::parse(trace_of(events), nullptr, false);
    ASSERT_TRUE(trace.is_object());
    expect_nesting(trace);
  }
}

TEST(ChromeTraceTest, AFullDiskIsReportedOnceAndEndsTheWork) {
  int calls = 0;
  ChromeTrace trace([&](std::string_view) -> Status {
    ++calls;
    return Error{Code::kIo, "no space"};
  });
  std::vector<Event> events(100'000, {.time = 1us, .kind = EventKind::kPrepDone, .b = 1});
  trace.add(events, "run", Time{});
  const Status status = trace.finish();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "no space");
  EXPECT_EQ(calls, 1);
}

TEST(ChromeTraceTest, MemoryDoesNotGrowWithTheRecord) {
  std::size_t longest = 0;
  ChromeTrace trace([&](std::string_view part) {
    longest = std::max(longest, part.size());
    return Status();
  });
  std::vector<Event> events;
  for (int i = 0; i < 200'000; ++i) {  // reads that never end
    events.push_back({.time = Time(i), .kind = EventKind::kReadStarted, .a = static_cast<SampleId>(i)});
  }
  trace.add(events, "run", Time{});
  EXPECT_TRUE(trace.finish().ok());
  EXPECT_LT(longest, 70'000u);
  EXPECT_EQ(trace.left_out(), 199'000u);
}

}  // namespace
}  // namespace foreload
