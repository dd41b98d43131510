#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "explain_report.h"

namespace foreload {

namespace {

Json waits_json(const Waits& waits, double seconds) {
  return {{"total", share(waits.total(), seconds)},
          {"fetch", share(waits.fetch, seconds)},
          {"prep", share(waits.prep, seconds)}};
}

Json origins_json(const std::array<Bytes, kOrigins>& bytes) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kOrigins; ++i) json[kOriginNames[i]] = bytes[i];
  return json;
}

Json latencies_json(const Latencies& took) {
  return {{"count", took.count()},
          {"p50_s", seconds(took.quantile(0.5))},
          {"p90_s", seconds(took.quantile(0.9))},
          {"p99_s", seconds(took.quantile(0.99))},
          {"max_s", seconds(took.longest())}};
}

Json epoch_json(const EpochStory& epoch) {
  Json bytes = origins_json(epoch.read_bytes);
  bytes["memory"] = epoch.memory_bytes;
  return {{"epoch", epoch.epoch},
          {"begin_s", epoch.begin},
          {"seconds", epoch.seconds()},
          {"batches", epoch.batches},
          {"samples", epoch.samples},
          {"samples_per_s", rate(epoch.samples, epoch.seconds())},
          {"bytes", std::move(bytes)},
          {"stall", waits_json(epoch.waits, epoch.seconds())},
          {"limit", limit_name(epoch.waits.limit(epoch.seconds()))},
          {"replaced", epoch.replaced}};
}

Json windows_json(const RunStory& story) {
  Json list = Json::array();
  for (const StoryWindow& window : story.windows) {
    Json depth = Json::object();
    for (std::size_t i = 0; i < kOrigins; ++i) {
      if (window.depth[i]) depth[kOriginNames[i]] = *window.depth[i];
    }
    list.push_back({{"limit", limit_name(window.waits.limit(story.window_seconds))},
                    {"fetch", share(window.waits.fetch, story.window_seconds)},
                    {"prep", share(window.waits.prep, story.window_seconds)},
                    {"batches", window.batches},
                    {"read_bytes", origins_json(window.read_bytes)},
                    {"busy_prep_threads", story.window_seconds > 0 ? window.prep_busy / story.window_seconds : 0},
                    {"depth", std::move(depth)}});
  }
  return {{"seconds", story.window_seconds}, {"list", std::move(list)}};
}

Json phases_json(const RunStory& story) {
  Json phases = Json::array();
  for (std::size_t i = 0; i < story.windows.size(); ++i) {
    const char* const limit = limit_name(story.windows[i].waits.limit(story.window_seconds));
    const double end = static_cast<double>(i + 1) * story.window_seconds;
    if (phases.empty() || phases.back()["limit"] != limit) {
      phases.push_back({{"limit", limit}, {"from_s", static_cast<double>(i) * story.window_seconds}, {"to_s", end}});
    }
    phases.back()["to_s"] = end;
  }
  return phases;
}

Json slowest_json(const std::vector<SlowSample>& slow, bool reads, const NameOf& name_of) {
  Json list = Json::array();
  for (const SlowSample& sample : slow) {
    const std::string name = name_of(sample.id);
    Json one{{"id", sample.id},
             {"name", name.empty() ? Json() : Json(name)},
             {"seconds", seconds(sample.took)},
             {"at_s", sample.at}};
    if (reads) {
      one["bytes"] = sample.length;
      one["origin"] = kOriginNames[static_cast<std::size_t>(sample.origin)];
    }
    list.push_back(std::move(one));
  }
  return list;
}

Json counts_json(const StoryCounts& counts) {
  return {{"hits", counts.hits},
          {"joined", counts.joined},
          {"misses", counts.misses},
          {"retried_reads", counts.retried_reads},
          {"retries", counts.retries},
          {"hedges", counts.hedges},
          {"throttled", counts.throttled},
          {"pauses", counts.pauses},
          {"evicted", counts.evicted},
          {"spared", counts.spared},
          {"bypassed", counts.bypassed},
          {"replaced", counts.replaced},
          {"disk_dropped", counts.disk_dropped},
          {"seeks", counts.seeks}};
}

}  // namespace

Json story_json(const TitledStory& told, const NameOf& name_of) {
  const RunStory& story = told.story;
  const double all = story.consumed_seconds();
  Json json{{"file", told.file},
            {"rank", story.opened ? Json(story.rank) : Json()},
            {"world", story.opened ? Json(story.world) : Json()},
            {"samples", story.opened ? Json(story.samples) : Json()},
            {"global_batch", story.opened ? Json(story.global_batch) : Json()},
            {"events", story.events},
            {"seconds", story.seconds},
            {"batches", story.batches},
            {"delivered", story.delivered},
            {"limit", limit_name(story.limit())},
            {"stall", waits_json(story.waits, all)},
            {"epochs", Json::array()},
            {"epochs_left_out", story.epochs_left_out}};
  for (const EpochStory& epoch : story.epochs) json["epochs"].push_back(epoch_json(epoch));
  json["windows"] = windows_json(story);
  json["phases"] = phases_json(story);
  json["reads"] = Json::object();
  for (std::size_t i = 0; i < kOrigins; ++i) {
    Json reads = latencies_json(story.reads[i].took);
    reads["bytes"] = story.reads[i].bytes;
    reads["fills"] = story.reads[i].fills;
    json["reads"][kOriginNames[i]] = std::move(reads);
  }
  json["prep"] = latencies_json(story.prep);
  json["prep"]["threads"] = story.prep_threads;
  json["prep"]["busy_share"] = story.prep_share();
  json["slowest"] = {{"reads", slowest_json(story.slow_reads, true, name_of)},
                     {"preps", slowest_json(story.slow_preps, false, name_of)}};
  json["counts"] = counts_json(story.counts);
  return json;
}

Json learners_json(const LearnersStory& story) {
  Json json{{"steps", story.steps},
            {"unequal", story.is_unequal()},
            {"wait_s", {{"mean", story.mean_wait}, {"longest", story.longest_wait}, {"lost", story.lost()}}},
            {"lost_share", share(story.lost(), story.seconds)},
            {"ratio", {{"bytes", story.bytes_ratio}, {"misses", story.misses_ratio}}},
            {"list", Json::array()},
            {"worst_steps", Json::array()}};
  for (const LearnerStory& learner : story.learners) {
    json["list"].push_back({{"rank", learner.rank},
                            {"wait_s", {{"fetch", learner.waits.fetch}, {"prep", learner.waits.prep}}},
                            {"slowest_steps", learner.slowest},
                            {"bytes", learner.bytes},
                            {"missed_bytes", learner.missed_bytes},
                            {"misses", learner.misses}});
  }
  for (const WorstStep& step : story.worst) {
    json["worst_steps"].push_back({{"epoch", step.epoch},
                                   {"step", step.step},
                                   {"rank", step.rank},
                                   {"wait_s", step.waited},
                                   {"mean_wait_s", step.mean}});
  }
  return json;
}

}  // namespace foreload
