#include "explain_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace foreload {

namespace {

constexpr std::size_t kMostEpochLines = 7;
constexpr std::size_t kNamed = 3;  // of the slowest, in lines
constexpr std::size_t kLongestName = 44;

std::string shortened(const std::string& name) {
  return name.size() <= kLongestName ? name : "…" + name.substr(name.size() - kLongestName + 1);
}

std::string percent(double share_of_one) {
  return fmt::format("{:.1f} %", 100 * share_of_one);
}

std::string title(const TitledStory& told) {
  const RunStory& story = told.story;
  const std::string of = story.opened ? fmt::format("rank {} of {}, {}, global batch {}", story.rank, story.world,
                                                    counted(story.samples, "sample"), format_count(story.global_batch))
                                      : "without its beginning";
  return fmt::format("{}: {}; {:.2f} s, {}", told.file, of, story.seconds, counted(story.events, "event"));
}

struct Columns {
  bool disk = false;
  bool peer = false;
};

std::string epoch_head(const Columns& columns) {
  return fmt::format("{:>5} {:>8} {:>9} {:>7} {:>7} {:>10} {}{}{:>10}  {}", "epoch", "seconds", "samples/s", "fetch",
                     "prep", "memory", columns.disk ? fmt::format("{:>10} ", "disk") : "",
                     columns.peer ? fmt::format("{:>10} ", "peers") : "", "source", "limit");
}

std::string epoch_line(const EpochStory& epoch, const Columns& columns) {
  const auto bytes = [&](Origin origin) { return format_bytes(epoch.read_bytes[static_cast<std::size_t>(origin)]); };
  const double all = epoch.seconds();
  return fmt::format("{:>5} {:>8.2f} {:>9.0f} {:>7} {:>7} {:>10} {}{}{:>10}  {}", epoch.epoch, all,
                     rate(epoch.samples, all), percent(share(epoch.waits.fetch, all)),
                     percent(share(epoch.waits.prep, all)), format_bytes(epoch.memory_bytes),
                     columns.disk ? fmt::format("{:>10} ", bytes(Origin::kDisk)) : "",
                     columns.peer ? fmt::format("{:>10} ", bytes(Origin::kPeer)) : "", bytes(Origin::kSource),
                     limit_name(epoch.waits.limit(all)));
}

// The first ones and the last ones.
void add_epochs(const RunStory& story, std::vector<std::string>& lines) {
  const Columns columns{.disk = story.reads[1].took.count() > 0, .peer = story.reads[2].took.count() > 0};
  lines.push_back(epoch_head(columns));
  const std::size_t count = story.epochs.size();
  const bool all = count <= kMostEpochLines;
  for (std::size_t i = 0; i < count; ++i) {
    const bool shown = all || i < kMostEpochLines / 2 || i >= count - kMostEpochLines / 2;
    if (shown) lines.push_back(epoch_line(story.epochs[i], columns));
    if (!all && i == kMostEpochLines / 2) {
      lines.push_back(fmt::format("    … {} more, which --json lists …", count - 2 * (kMostEpochLines / 2)));
    }
  }
}

std::string timeline(const RunStory& story) {
  std::string strip;
  for (const StoryWindow& window : story.windows) {
    const Limit limit = window.waits.limit(story.window_seconds);
    strip += limit == Limit::kFetch ? 'F' : limit == Limit::kPrep ? 'P' : '.';
  }
  return strip;
}

// "source 8 → 32 → 16": every change that a window's end shows, the last twelve.
std::string depths(const RunStory& story) {
  constexpr std::size_t kShown = 12;
  std::string text;
  for (std::size_t origin = 0; origin < kOrigins; ++origin) {
    std::vector<std::string> changes;
    std::optional<unsigned> last;
    for (const StoryWindow& window : story.windows) {
      if (window.depth[origin] == last) continue;
      last = window.depth[origin];
      changes.push_back(fmt::format("{}", last.value_or(0)));
    }
    if (changes.empty()) continue;
    const bool cut = changes.size() > kShown;
    if (cut) changes.erase(changes.begin(), changes.end() - kShown);
    text += fmt::format("{}{} {}{}", text.empty() ? "" : "; ", kOriginNames[origin], cut ? "… → " : "",
                        fmt::join(changes, " → "));
  }
  return text;
}

void add_reads(const RunStory& story, std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < kOrigins; ++i) {
    const ReadsStory& reads = story.reads[i];
    if (reads.took.count() == 0) continue;
    lines.push_back(fmt::format("{:<13} {} from {}, {}: half took {}, 99 % {}, the slowest {}", "reads",
                                format_count(reads.took.count()), kOriginNames[i], format_bytes(reads.bytes),
                                format_duration(reads.took.quantile(0.5)), format_duration(reads.took.quantile(0.99)),
                                format_duration(reads.took.longest())));
  }
  if (const std::string text = depths(story); !text.empty()) lines.push_back(fmt::format("{:<13} {}", "at once", text));
}

void add_prep(const RunStory& story, std::vector<std::string>& lines) {
  if (story.prep.count() > 0) {
    lines.push_back(fmt::format("{:<13} {}, {:.0f} % busy: half of the samples took {}, 99 % {}, the slowest {}",
                                "prep", counted(story.prep_threads, "thread"), 100 * story.prep_share(),
                                format_duration(story.prep.quantile(0.5)), format_duration(story.prep.quantile(0.99)),
                                format_duration(story.prep.longest())));
  }
  if (story.prep.count() < story.delivered) {
    lines.push_back(fmt::format("{:<13} {} of {} samples were prepared by other processes", "",
                                format_count(story.delivered - story.prep.count()), format_count(story.delivered)));
  }
}

void add_counts(const StoryCounts& counts, std::vector<std::string>& lines) {
  std::vector<std::string> words;
  const auto say = [&](std::uint64_t count, const char* what) {
    if (count > 0) words.push_back(fmt::format("{} {}", format_count(count), what));
  };
  say(counts.retried_reads, "reads retried");
  say(counts.hedges, "requests sent twice");
  say(counts.throttled, "requests throttled");
  say(counts.pauses, "requests failed");
  say(counts.evicted, "samples evicted");
  say(counts.bypassed, "not admitted to memory");
  say(counts.replaced, "bad samples replaced");
  say(counts.disk_dropped, "wrong on disk");
  say(counts.seeks, "seeks");
  if (!words.empty()) lines.push_back(fmt::format("{:<13} {}", "also", fmt::join(words, ", ")));
}

void add_slowest(const char* what, const std::vector<SlowSample>& slow, const NameOf& name_of,
                 std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < std::min(slow.size(), kNamed); ++i) {
    const std::string name = name_of(slow[i].id);
    lines.push_back(fmt::format("{:<13} {:>8}  sample {}{}{}", i == 0 ? what : "", format_duration(slow[i].took),
                                slow[i].id, name.empty() ? "" : ", ", shortened(name)));
  }
}

std::string verdict(const RunStory& story) {
  const double all = story.consumed_seconds();
  const double stalled = 100 * share(story.waits.total(), all);
  switch (story.limit()) {
    case Limit::kFetch:
      return fmt::format(
          "Fetching limits: {:.0f} % of the time nothing could be prepared for want of bytes. More of the "
          "dataset in memory (--memory) or on a local disk (--disk), or faster storage, would end it.",
          100 * share(story.waits.fetch, all));
    case Limit::kPrep:
      return fmt::format(
          "Prep limits: {:.0f} % of the time the bytes were there and not yet prepared. More cores "
          "(--workers, foreload agent), foreload convert or --decode fast would end it.",
          100 * share(story.waits.prep, all));
    default:
      return fmt::format("The consumer limits: it waited {:.1f} % of the time. The loader keeps up.", stalled);
  }
}

}  // namespace

std::vector<std::string> story_lines(const TitledStory& told, const NameOf& name_of) {
  const RunStory& story = told.story;
  std::vector<std::string> lines{title(told)};
  if (story.batches == 0) {
    lines.push_back("no batch was delivered in it");
  } else {
    add_epochs(story, lines);
    lines.push_back(fmt::format("{:<13} {}", "limited by", timeline(story)));
    lines.push_back(fmt::format("{:<13} F fetch, P prep, . the consumer; {} each", "",
                                format_duration(Duration(static_cast<Duration::rep>(1e9 * story.window_seconds)))));
  }
  add_reads(story, lines);
  add_prep(story, lines);
  add_counts(story.counts, lines);
  add_slowest("slowest reads", story.slow_reads, name_of, lines);
  add_slowest("slowest preps", story.slow_preps, name_of, lines);
  if (story.batches > 0) lines.push_back(verdict(story));
  return lines;
}

std::vector<std::string> learners_lines(std::span<const TitledStory> told, const LearnersStory& learners) {
  std::vector<std::string> lines{
      fmt::format("{}, {} in common", counted(told.size(), "learner"), counted(learners.steps, "step")),
      fmt::format("{:>5} {:>8} {:>9} {:>7} {:>7} {:>9} {:>10} {:>10}  {}", "rank", "seconds", "samples/s", "fetch",
                  "prep", "slowest", "consumed", "missed", "limit")};
  for (std::size_t i = 0; i < told.size(); ++i) {
    const RunStory& story = told[i].story;
    const LearnerStory& learner = learners.learners[i];
    const double all = story.consumed_seconds();
    lines.push_back(fmt::format(
        "{:>5} {:>8.2f} {:>9.0f} {:>7} {:>7} {:>9} {:>10} {:>10}  {}", story.rank, all, rate(story.delivered, all),
        percent(share(story.waits.fetch, all)), percent(share(story.waits.prep, all)), format_count(learner.slowest),
        format_bytes(learner.bytes), format_bytes(learner.missed_bytes), limit_name(story.limit())));
  }
  lines.push_back("slowest: steps in which nobody waited longer; missed: bytes that had to be read for it");
  if (learners.steps == 0) {
    lines.push_back("They have no step in common: nothing can be compared.");
    return lines;
  }
  lines.push_back(fmt::format("per step      the most consumed bytes are {:.2f} of the mean, the most misses {:.2f}",
                              learners.bytes_ratio, learners.misses_ratio));
  for (std::size_t i = 0; i < std::min(learners.worst.size(), kNamed); ++i) {
    const WorstStep& step = learners.worst[i];
    lines.push_back(fmt::format("{:<13} epoch {} step {}: rank {} waited {}, the mean {}", i == 0 ? "worst steps" : "",
                                step.epoch, step.step, step.rank,
                                format_duration(Duration(static_cast<Duration::rep>(1e9 * step.waited))),
                                format_duration(Duration(static_cast<Duration::rep>(1e9 * step.mean)))));
  }
  const auto slowest = std::ranges::max_element(learners.learners, {}, &LearnerStory::slowest);
  lines.push_back(fmt::format(
      "A job in step waits {:.2f} s for the slowest of each step, {:.2f} s on average: {:.1f} % "
      "of the time {}.",
      learners.longest_wait, learners.mean_wait, 100 * share(learners.lost(), learners.seconds),
      learners.is_unequal() ? fmt::format("is lost by imbalance, most often because of rank {}", slowest->rank)
                            : "goes with imbalance"));
  return lines;
}

}  // namespace foreload
