#include "serve/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "base/clock.h"
#include "host/host_testing.h"
#include "loader/ledger.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

// The series of a text, by name and labels as they stand there. Fails the test when the text breaks the format.
std::map<std::string, double> read(const std::string& text) {
  static const std::regex sample(R"re(([a-z_]+)\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)*\} (\S+))re");
  std::map<std::string, double> series;
  std::set<std::string> families;
  std::string family;
  std::string line;
  EXPECT_TRUE(text.ends_with('\n'));
  for (std::istringstream lines(text); std::getline(lines, line);) {
    if (line.starts_with("# HELP ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(family).second) << family << " comes twice";
      continue;
    }
    if (line.starts_with("# TYPE ")) {
      EXPECT_TRUE(line == "# TYPE " + family + (family.ends_with("_total") ? " counter" : " gauge")) << line;
      continue;
    }
    std::smatch parts;
    EXPECT_TRUE(std::regex_match(line, parts, sample)) << line;
    if (parts.empty()) continue;
    EXPECT_EQ(parts[1], family);
    const double value = std::stod(parts[4]);
    EXPECT_TRUE(series.emplace(line.substr(0, line.rfind(' ')), value).second) << line << " comes twice";
    EXPECT_GE(value, 0) << line;
  }
  return series;
}

StreamSurvey stream_of(ObjectId id, unsigned rank) {
  return {.id = id,
          .process = 4000 + rank,
          .rank = rank,
          .world = 2,
          .slots = 4,
          .published = 3,
          .pace = {.step = 250ms},
          .report = {.batches = 10,
                     .samples = 80,
                     .fetch_stall = 1500ms,
                     .prep_stall = 500ms,
                     .memory_bytes = 1,
                     .disk_bytes = 2,
                     .source_bytes = 9'000'000'000,
                     .replaced = 5,
                     .damaged = 6,
                     .since = 10s,
                     .until = 20s},
          .prepared_by = {{0, 4000, 30}, {1, 4001, 50}},
          .bytes = 1_MiB};
}

HostSurvey survey_of(std::vector<StreamSurvey> streams, const std::string& name = "job7") {
  HostSurvey survey{.name = name, .budget = 1_GiB, .cores = 8, .cores_in_use = 3};
  survey.members = {{.id = {0, 1}, .process = 4000, .reserved = 7, .alive = true},
                    {.id = {1, 1}, .process = 4001, .reserved = 9, .alive = true}};
  survey.streams = std::move(streams);
  survey.memory = {.arenas = 100, .streams = 200, .members = 16};
  return survey;
}

TEST(MetricsTest, ALearnerIsToldWithAllThatTheSurveyHas) {
  const auto series = read(metrics_text(survey_of({stream_of(65537, 1)})));
  const std::string learner = R"(host="job7",stream="65537",process="4001",rank="1",world="2")";
  const auto of = [&](const std::string& name, const std::string& more = "") {
    const auto found = series.find(name + "{" + learner + more + "}");
    return found == series.end() ? -1 : found->second;
  };
  EXPECT_EQ(of("foreload_learner_batches_total"), 10);
  EXPECT_EQ(of("foreload_learner_samples_total"), 80);
  EXPECT_EQ(of("foreload_learner_stall_seconds_total", R"(,cause="fetch")"), 1.5);
  EXPECT_EQ(of("foreload_learner_stall_seconds_total", R"(,cause="prep")"), 0.5);
  EXPECT_DOUBLE_EQ(of("foreload_learner_stall_ratio", R"(,cause="fetch")"), 0.15);
  EXPECT_DOUBLE_EQ(of("foreload_learner_stall_ratio", R"(,cause="prep")"), 0.05);
  EXPECT_EQ(of("foreload_learner_bytes_total", R"(,tier="memory")"), 1);
  EXPECT_EQ(of("foreload_learner_bytes_total", R"(,tier="disk")"), 2);
  EXPECT_EQ(of("foreload_learner_bytes_total", R"(,tier="source")"), 9e9);
  EXPECT_EQ(of("foreload_learner_bad_samples_total", R"(,reason="replaced")"), 5);
  EXPECT_EQ(of("foreload_learner_bad_samples_total", R"(,reason="damaged")"), 6);
  EXPECT_EQ(of("foreload_learner_queue_batches"), 3);
  EXPECT_EQ(of("foreload_learner_queue_slots"), 4);
  EXPECT_EQ(of("foreload_learner_step_seconds"), 0.25);
  EXPECT_EQ(of("foreload_learner_prepared_samples_total", R"(,by_place="0",by_process="4000")"), 30);
  EXPECT_EQ(of("foreload_learner_prepared_samples_total", R"(,by_place="1",by_process="4001")"), 50);
}

TEST(MetricsTest, TheHostIsToldWithItsMemoryByPurpose) {
  auto series = read(metrics_text(survey_of({})));
  EXPECT_EQ(series[R"(foreload_host_members{host="job7"})"], 2);
  EXPECT_EQ(series[R"(foreload_host_cores{host="job7"})"], 8);
  EXPECT_EQ(series[R"(foreload_host_cores_in_use{host="job7"})"], 3);
  EXPECT_EQ(series[R"(foreload_host_memory_budget_bytes{host="job7"})"], 1_GiB);
  EXPECT_EQ(series[R"(foreload_host_memory_bytes{host="job7",purpose="arenas"})"], 100);
  EXPECT_EQ(series[R"(foreload_host_memory_bytes{host="job7",purpose="streams"})"], 200);
  EXPECT_EQ(series[R"(foreload_host_memory_bytes{host="job7",purpose="members"})"], 16);
  EXPECT_EQ(series[R"(foreload_member_memory_bytes{host="job7",place="1",process="4001"})"], 9);
}

// Containers have process numbers of their own, and every loader of a process may have the same rank.
TEST(MetricsTest, ProcessesWithTheSameNumberAndStreamsOfTheSameRankAreToldApart) {
  HostSurvey survey = survey_of({stream_of(1, 0), stream_of(2, 0)});
  for (MemberInfo& member : survey.members) member.process = 1;
  for (StreamSurvey& stream : survey.streams)
    stream.process = stream.prepared_by[0].process = stream.prepared_by[1].process = 1;
  read(metrics_text(survey));  // fails when a series comes twice
}

TEST(MetricsTest, AnyNameOfAHostIsEscaped) {
  std::string name = "/run/a\"b\\c\nd\xff\x01";
  const std::string text = metrics_text(survey_of({stream_of(1, 0)}, name));
  read(text);
  EXPECT_NE(text.find(R"(host="/run/a\"b\\c\\x0ad\\xff\\x01")"), std::string::npos) << text.substr(0, 300);
}

TEST(MetricsTest, WhateverALearnerWroteTheTextIsWellFormed) {
  StreamSurvey stream = stream_of(~ObjectId{0}, ~0u);
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  stream.report = {.batches = ~0ull,
                   .samples = ~0ull,
                   .fetch_stall = Duration(kLeast),
                   .prep_stall = Duration(kMost),
                   .memory_bytes = ~0ull,
                   .since = Time(kMost),
                   .until = Time(kLeast)};
  stream.pace.step = Duration(kLeast);
  read(metrics_text(survey_of({stream})));
  std::swap(stream.report.since, stream.report.until);
  read(metrics_text(survey_of({stream})));
}

// In a process of its own: the parent of forked children has no threads.
TEST(MetricsTest, AMemberTellsOfARunningLearnerAndKeepsNothingOfIt) {
  const Ledger ledger(600);
  const std::string host = fresh_host();
  HostChild child([&](const HostChild::Tell& tell, int) {
    const auto check = [&]() -> int {
      auto member = Member::join(host, {.budget = 256_MiB});
      if (!member.ok()) return 1;
      const auto before = survey_host(**member);
      if (!before || !before->streams.empty()) return 2;
      LoaderOptions options = ledger.options(8);
      options.host = host;
      options.memory = 256_MiB;
      {
        auto loader = Loader::open(options);
        for (std::uint64_t batch = 1; batch <= 20; ++batch) {
          if (!loader.ok() || !loader->next().ok()) return 3;
          const auto survey = survey_host(**member);
          if (!survey || survey->streams.size() != 1 || survey->streams[0].report.batches != batch) return 4;
          if (read(metrics_text(*survey)).empty()) return 5;
        }
      }
      const Time until = now() + 20s;  // workers let go of the stream when they look next
      while (now() < until) {
        const auto survey = survey_host(**member);
        if (survey && survey->memory.streams == 0 && survey->streams.empty())
          return testing::Test::HasFailure() ? 6 : 0;
        ::usleep(2'000);
      }
      return 7;
    };
    tell({.what = check()});
  });
  const auto told = child.next(120s);
  EXPECT_EQ(told ? told->what : -1, 0);
}

// Closing any descriptor of the control block would give up the record lock.
TEST(MetricsTest, AMemberThatSurveysItsHostStaysAlive) {
  const std::string host = fresh_host();
  HostChild child([&](const HostChild::Tell& tell, int until) {
    auto member = Member::join(host, {.own_budget = 1_GiB});
    int looks = 0;
    for (int i = 0; i < 10 && member.ok(); ++i) looks += survey_host(**member) ? 1 : 0;
    tell({.what = looks});
    wait_for_end(until);
  });
  const auto told = child.next();
  ASSERT_TRUE(told && told->what == 10);
  auto observer = Observer::open(host);
  ASSERT_TRUE(observer.ok() && observer->has_value());
  const auto survey = (*observer)->look();
  ASSERT_TRUE(survey);
  ASSERT_EQ(survey->members.size(), 1u);
  EXPECT_EQ(survey->members[0].process, static_cast<std::uint32_t>(child.pid()));
}

}  // namespace
}  // namespace foreload
