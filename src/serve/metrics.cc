// A table says what is told of every learner; a line of it is a family of series: one per learner, or several that
// differ in one more label. What is told of the host as a whole stands below.
#include "serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "serve/metrics_page.h"

namespace foreload {

// Bytes that are no printable ASCII are written as \xNN: the text has to be UTF-8, and names of folders need not be.
std::string metric_label(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') {
      escaped += '\\';
      escaped += c;
    } else if (c >= ' ' && c <= '~') {
      escaped += c;
    } else {
      fmt::format_to(std::back_inserter(escaped), "\\\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

namespace {

// Of the time since the learner's first batch.
double share(Duration part, const LearnerReport& report) {
  const double all = seconds(report.until) - seconds(report.since);
  return all > 0 ? std::clamp(seconds(part) / all, 0.0, 1.0) : 0;
}

struct Value {
  std::string_view label{};  // of the family's own label; empty: it has none
  double (*of)(const StreamSurvey& stream) = nullptr;
};

struct Family {
  std::string_view name{};
  MetricKind kind = MetricKind::kCounter;
  std::string_view help{};
  std::string_view label{};
  std::array<Value, 4> values{};
};

template <auto Field>
double report(const StreamSurvey& stream) {
  return static_cast<double>(stream.report.*Field);
}

constexpr auto kLearnerFamilies = std::to_array<Family>({
    {"foreload_learner_batches_total",
     MetricKind::kCounter,
     "Batches that the learner took.",
     "",
     {{{"", report<&LearnerReport::batches>}}}},
    {"foreload_learner_samples_total",
     MetricKind::kCounter,
     "Samples in them.",
     "",
     {{{"", report<&LearnerReport::samples>}}}},
    {"foreload_learner_stall_seconds_total",
     MetricKind::kCounter,
     "Time that the learner waited for a batch: for its bytes (fetch), or for their decoding (prep).",
     "cause",
     {{{"fetch", [](const StreamSurvey& s) { return seconds(s.report.fetch_stall); }},
       {"prep", [](const StreamSurvey& s) { return seconds(s.report.prep_stall); }}}}},
    {"foreload_learner_stall_ratio",
     MetricKind::kGauge,
     "Share of the time since its first batch that it waited.",
     "cause",
     {{{"fetch", [](const StreamSurvey& s) { return share(s.report.fetch_stall, s.report); }},
       {"prep", [](const StreamSurvey& s) { return share(s.report.prep_stall, s.report); }}}}},
    {"foreload_learner_bytes_total",
     MetricKind::kCounter,
     "Sample bytes by the tier that they came from.",
     "tier",
     {{{"memory", report<&LearnerReport::memory_bytes>},
       {"disk", report<&LearnerReport::disk_bytes>},
       {"peer", report<&LearnerReport::peer_bytes>},
       {"source", report<&LearnerReport::source_bytes>}}}},
    {"foreload_learner_bad_samples_total",
     MetricKind::kCounter,
     "Samples that were replaced by others, or decoded although damaged.",
     "reason",
     {{{"replaced", report<&LearnerReport::replaced>}, {"damaged", report<&LearnerReport::damaged>}}}},
    {"foreload_learner_queue_batches",
     MetricKind::kGauge,
     "Batches that are ready for the learner.",
     "",
     {{{"", [](const StreamSurvey& s) { return static_cast<double>(s.published); }}}}},
    {"foreload_learner_queue_slots",
     MetricKind::kGauge,
     "Batches that there is room for.",
     "",
     {{{"", [](const StreamSurvey& s) { return static_cast<double>(s.slots); }}}}},
    {"foreload_learner_step_seconds",
     MetricKind::kGauge,
     "What the learner does with a batch takes so long, on average.",
     "",
     {{{"", [](const StreamSurvey& s) { return seconds(s.pace.step); }}}}},
});

std::string learner_labels(const StreamSurvey& stream) {
  return fmt::format(",stream=\"{}\",process=\"{}\",rank=\"{}\",world=\"{}\"", stream.id, stream.process, stream.rank,
                     stream.world);
}

void tell_learners(MetricsPage& text, std::span<const StreamSurvey> streams) {
  for (const Family& family : kLearnerFamilies) {
    text.family(family.name, family.kind, family.help);
    for (const StreamSurvey& stream : streams) {
      const std::string labels = learner_labels(stream);
      for (const Value& value : family.values) {
        if (value.of == nullptr) break;
        const std::string own = family.label.empty() ? "" : fmt::format(",{}=\"{}\"", family.label, value.label);
        text.series(labels + own, value.of(stream));
      }
    }
  }
  text.family("foreload_learner_prepared_samples_total", MetricKind::kCounter,
              "Samples of the learner by the process that prepared them, of members that live.");
  for (const StreamSurvey& stream : streams) {
    for (const StreamSurvey::Helper& helper : stream.prepared_by) {
      text.series(
          fmt::format("{},by_place=\"{}\",by_process=\"{}\"", learner_labels(stream), helper.place, helper.process),
          static_cast<double>(helper.samples));
    }
  }
}

void tell_host(MetricsPage& text, const HostSurvey& survey) {
  const auto one = [&text](std::string_view name, std::string_view help, double value) {
    text.family(name, MetricKind::kGauge, help);
    text.series("", value);
  };
  one("foreload_host_members", "Processes of the host that live.", static_cast<double>(survey.members.size()));
  one("foreload_host_learners", "Learners of them.", static_cast<double>(survey.streams.size()));
  one("foreload_host_cores", "Cores that workers of all members may use together.", survey.cores);
  one("foreload_host_cores_in_use", "Cores that they use now.", survey.cores_in_use);
  one("foreload_host_memory_budget_bytes", "Memory that all members may take together.",
      static_cast<double>(survey.budget));
  text.family("foreload_host_memory_bytes", MetricKind::kGauge,
              "Memory that is taken of the budget: caches (arenas), batches and bytes in transit (streams), scratch of "
              "processes (members).");
  text.series(",purpose=\"arenas\"", static_cast<double>(survey.memory.arenas));
  text.series(",purpose=\"streams\"", static_cast<double>(survey.memory.streams));
  text.series(",purpose=\"members\"", static_cast<double>(survey.memory.members));
  text.family("foreload_member_memory_bytes", MetricKind::kGauge, "Scratch of a process, of the budget.");
  for (const MemberInfo& member : survey.members) {
    text.series(fmt::format(",place=\"{}\",process=\"{}\"", member.id.index, member.process),
                static_cast<double>(member.reserved));
  }
}

}  // namespace

std::string metrics_text(const HostSurvey& survey) {
  MetricsPage text(survey.name);
  tell_host(text, survey);
  tell_learners(text, survey.streams);
  return text.take();
}

}  // namespace foreload
