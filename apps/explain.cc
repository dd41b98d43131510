#include "explain.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/event_record.h"
#include "base/text.h"
#include "base/write_file.h"
#include "explain_report.h"
#include "foreload/source.h"
#include "lab/chrome_trace.h"
#include "lab/learners.h"
#include "lab/run_story.h"
#include "progress.h"
#include "signals.h"

namespace foreload {

namespace {

Result<std::vector<Event>> read_events(const std::string& path) {
  FORELOAD_ASSIGN(std::vector<Event> events, read_event_record(path));
  if (caught_signal() != 0) return Error{Code::kCancelled, "stopped by a signal"};
  if (!events.empty()) return events;
  return Error{Code::kInvalid, path +
                                   " has no events: the run was killed before it wrote any (they are written 4,096 at "
                                   "a time); record a longer run"};
}

Result<std::vector<TitledStory>> tell(const ExplainOptions& options) {
  std::vector<TitledStory> told;
  const StoryOptions how{.steps = options.records.size() > 1};
  for (const std::string& path : options.records) {
    FORELOAD_ASSIGN(const std::vector<Event> events, read_events(path));
    told.push_back({path, story_of(events, how)});
  }
  return told;
}

// Learners of one job: same world, every rank once.
Status check_one_job(const std::vector<TitledStory>& told) {
  for (std::size_t i = 1; i < told.size(); ++i) {
    const RunStory& first = told[0].story;
    const RunStory& story = told[i].story;
    if (story.world != first.world || story.global_batch != first.global_batch || story.samples != first.samples) {
      return Error{Code::kInvalid,
                   fmt::format("{} and {} are not of one job ({} and {} samples, global batch {} and {}, world {} and "
                               "{}): explain them one by one",
                               told[0].file, told[i].file, first.samples, story.samples, first.global_batch,
                               story.global_batch, first.world, story.world)};
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (told[j].story.rank != story.rank) continue;
      return Error{Code::kInvalid, fmt::format("{} and {} are both of rank {}: give one record of each learner",
                                               told[j].file, told[i].file, story.rank)};
    }
  }
  return {};
}

bool is_same_file(const std::string& x, const std::string& y) {
  struct stat of_x {};
  struct stat of_y {};
  return stat(x.c_str(), &of_x) == 0 && stat(y.c_str(), &of_y) == 0 && of_x.st_dev == of_y.st_dev &&
         of_x.st_ino == of_y.st_ino;
}

// Records of one machine share its clock; those of several are all shown from their beginning.
bool share_a_clock(const std::vector<TitledStory>& told) {
  Time latest_begin = told[0].story.begin;
  Time first_end = told[0].story.end;
  for (const TitledStory& each : told) {
    latest_begin = std::max(latest_begin, each.story.begin);
    first_end = std::min(first_end, each.story.end);
  }
  return latest_begin <= first_end;
}

Status write_chrome(const ExplainOptions& options, const std::vector<TitledStory>& told, const Output& output) {
  for (const std::string& record : options.records) {
    if (!is_same_file(record, options.chrome)) continue;
    return Error{Code::kInvalid, fmt::format("--chrome {} is the record itself: name another file", options.chrome)};
  }
  FORELOAD_ASSIGN(const Descriptor file, create_output(options.chrome));
  ChromeTrace trace([&](std::string_view text) -> Status {
    if (caught_signal() != 0) return Error{Code::kCancelled, "stopped by a signal"};
    return write_all(file.get(), std::as_bytes(std::span(text)), options.chrome);
  });
  const bool one_clock = share_a_clock(told);
  const Time earliest =
      std::ranges::min_element(told, {}, [](const auto& each) { return each.story.begin; })->story.begin;
  for (const TitledStory& each : told) {
    FORELOAD_ASSIGN(const std::vector<Event> events, read_events(each.file));
    const std::string name = fmt::format("foreload rank {} of {} ({})", each.story.rank, each.story.world, each.file);
    trace.add(events, name, one_clock ? earliest : each.story.begin);
  }
  FORELOAD_TRY(trace.finish());
  output.line("{:<13} {}: {}; open it at ui.perfetto.dev or in chrome://tracing", "trace", options.chrome,
              counted(trace.spans(), "span"));
  return {};
}

// Null where no dataset is given, or it is another one.
Result<std::unique_ptr<Source>> open_names(const ExplainOptions& options, const RunStory& story, const Output& output) {
  if (options.dataset.empty()) return std::unique_ptr<Source>();
  SourceOptions how{.datasets = options.dataset};
  how.warn = [&](const std::string& text) { output.warn(text); };
  Progress progress("indexing", "samples", 0);
  how.progress = [&](std::uint64_t done, std::uint64_t total) {
    progress.set_total(total);
    progress.set(done);
  };
  FORELOAD_ASSIGN(std::unique_ptr<Source> source, open_source(how));
  if (!story.opened || source->size() == story.samples) return source;
  output.warn(
      fmt::format("{} has {}, but the run had {}: it is another dataset, or a part of it; samples have no names",
                  source->uri(), counted(source->size(), "sample"), format_count(story.samples)));
  return std::unique_ptr<Source>();
}

}  // namespace

Result<Json> explain_record(const ExplainOptions& options, const Output& output) {
  if (options.records.empty())
    return Error{Code::kInvalid, "no record is given: --record FILE of foreload run --record"};
  FORELOAD_ASSIGN(const std::vector<TitledStory> told, tell(options));
  FORELOAD_TRY(check_one_job(told));
  FORELOAD_ASSIGN(const std::unique_ptr<Source> source, open_names(options, told[0].story, output));
  const NameOf name_of = [&](SampleId id) {
    return source != nullptr && id < source->size() ? source->key(id) : std::string();
  };
  Json report{{"records", Json::array()}};
  for (const TitledStory& each : told) report["records"].push_back(story_json(each, name_of));
  report["learners"] = nullptr;
  if (told.size() == 1) {
    for (const std::string& line : story_lines(told[0], name_of)) output.line("{}", line);
  } else {
    std::vector<RunStory> stories;
    for (const TitledStory& each : told) stories.push_back(each.story);
    const LearnersStory learners = compare_learners(stories);
    report["learners"] = learners_json(learners);
    for (const std::string& line : learners_lines(told, learners)) output.line("{}", line);
  }
  report["chrome"] = options.chrome.empty() ? Json() : Json(options.chrome);
  if (!options.chrome.empty()) FORELOAD_TRY(write_chrome(options, told, output));
  return report;
}

}  // namespace foreload
