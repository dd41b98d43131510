#include "host_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"

namespace foreload {
namespace {

// Of the time since its first batch.
double share(Duration part, const LearnerReport& report) {
  const double all = seconds(report.until - report.since);
  return all > 0 ? std::clamp(seconds(part) / all, 0.0, 1.0) : 0;
}

double rate(const LearnerReport& report) {
  const double all = seconds(report.until - report.since);
  return all > 0 ? static_cast<double>(report.samples) / all : 0;
}

double hits(const LearnerReport& report) {
  const Bytes all = report.memory_bytes + report.disk_bytes + report.peer_bytes + report.source_bytes;
  return all > 0 ? static_cast<double>(report.memory_bytes) / static_cast<double>(all) : 0;
}

std::string helpers(const StreamSurvey& stream) {
  if (stream.fed_by != 0) return fmt::format("as for {}", stream.fed_by);
  std::uint64_t all = 0;
  for (const auto& helper : stream.prepared_by) all += helper.samples;
  std::string text;
  for (const auto& helper : stream.prepared_by) {
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", helper.process,
                        100.0 * static_cast<double>(helper.samples) / static_cast<double>(all));
  }
  return text;
}

}  // namespace

std::vector<std::string> host_lines(const HostSurvey& survey) {
  const HostSurvey::Memory& memory = survey.memory;
  std::vector<std::string> lines{
      fmt::format("host {}: {}, {} of {} at work", survey.name, counted(survey.members.size(), "member"),
                  survey.cores_in_use, counted(survey.cores, "core")),
      fmt::format("memory {} of {}: cache {}, batches and transit {}, scratch {}",
                  format_bytes(memory.arenas + memory.streams + memory.members), format_bytes(survey.budget),
                  format_bytes(memory.arenas), format_bytes(memory.streams), format_bytes(memory.members)),
      fmt::format("{:>8} {:>9} {:>6} {:>9} {:>9} {:>7} {:>7} {:>7}  {}", "process", "rank", "queue", "step",
                  "samples/s", "fetch", "prep", "memory", "prepared by")};
  for (const StreamSurvey& stream : survey.streams) {
    const LearnerReport& report = stream.report;
    lines.push_back(fmt::format("{:>8} {:>9} {:>6} {:>9} {:>9.0f} {:>5.1f} % {:>5.1f} % {:>5.1f} %  {}", stream.process,
                                fmt::format("{}/{}", stream.rank, stream.world),
                                fmt::format("{}/{}", stream.published, stream.slots), format_duration(stream.pace.step),
                                rate(report), 100 * share(report.fetch_stall, report),
                                100 * share(report.prep_stall, report), 100 * hits(report), helpers(stream)));
  }
  for (const MemberInfo& member : survey.members) {
    const bool learns = std::ranges::any_of(survey.streams, [&](const auto& s) { return s.process == member.process; });
    if (!learns) {
      lines.push_back(fmt::format("{:>8}   no learner, {}", member.process, counted(member.workers, "prep thread")));
    }
  }
  return lines;
}

Json host_json(const HostSurvey& survey) {
  Json members = Json::array();
  for (const MemberInfo& member : survey.members) {
    members.push_back({{"process", member.process},
                       {"place", member.id.index},
                       {"workers", member.workers},
                       {"reserved_bytes", member.reserved}});
  }
  Json arenas = Json::array();
  for (const ArenaSurvey& arena : survey.arenas) {
    arenas.push_back({{"bytes", arena.bytes},
                      {"reserved_bytes", arena.reserved},
                      {"users", arena.users},
                      {"holders", arena.holders}});
  }
  Json learners = Json::array();
  for (const StreamSurvey& stream : survey.streams) {
    const LearnerReport& report = stream.report;
    Json helped = Json::array();
    for (const auto& helper : stream.prepared_by) {
      helped.push_back({{"process", helper.process}, {"samples", helper.samples}});
    }
    learners.push_back(
        {{"process", stream.process},
         {"rank", stream.rank},
         {"world", stream.world},
         {"slots", stream.slots},
         {"published", stream.published},
         {"fed_by", stream.fed_by == 0 ? Json(nullptr) : Json(stream.fed_by)},
         {"step_s", seconds(stream.pace.step)},
         {"batches", report.batches},
         {"samples", report.samples},
         {"samples_per_s", rate(report)},
         {"stall", {{"fetch", share(report.fetch_stall, report)}, {"prep", share(report.prep_stall, report)}}},
         {"bytes",
          {{"memory", report.memory_bytes},
           {"disk", report.disk_bytes},
           {"peer", report.peer_bytes},
           {"source", report.source_bytes}}},
         {"replaced", report.replaced},
         {"damaged", report.damaged},
         {"region_bytes", stream.bytes},
         {"prepared_by", std::move(helped)}});
  }
  return {{"host", survey.name},
          {"budget_bytes", survey.budget},
          {"cores", survey.cores},
          {"cores_in_use", survey.cores_in_use},
          {"members", std::move(members)},
          {"arenas", std::move(arenas)},
          {"learners", std::move(learners)}};
}

}  // namespace foreload
