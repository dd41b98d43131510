// One walk over the events. Where the bytes of a read are counted follows the loader's own accounts: at the epoch of
// whoever asked first, or, when nobody needed them yet, where the stream stood.
#include "lab/run_story.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "policy/replay.h"

namespace foreload {

namespace {

constexpr double kNoStall = 0.05;
constexpr std::size_t kMostEpochs = 1000;

double to_seconds(Duration duration) {
  return static_cast<double>(duration.count()) * 1e-9;
}

// Numbers of a record are unsigned and may be anything.
Duration to_duration(std::uint64_t ns) {
  return Duration(static_cast<Duration::rep>(
      std::min<std::uint64_t>(ns, static_cast<std::uint64_t>(std::numeric_limits<Duration::rep>::max()))));
}

// The slowest of many samples, each once.
class Slowest {
 public:
  explicit Slowest(std::size_t most) : most_(most) {}

  void add(const SlowSample& sample) {
    if (most_ == 0 || (kept_.size() == most_ && sample.took <= kept_.back().took)) return;
    const auto same = std::ranges::find(kept_, sample.id, &SlowSample::id);
    if (same != kept_.end() && same->took >= sample.took) return;
    if (same != kept_.end()) kept_.erase(same);
    if (kept_.size() == most_) kept_.pop_back();
    const auto place = std::ranges::upper_bound(kept_, sample.took, std::greater<>(), &SlowSample::took);
    kept_.insert(place, sample);
  }
  std::vector<SlowSample> take() { return std::move(kept_); }

 private:
  std::size_t most_;
  std::vector<SlowSample> kept_;  // the slowest first
};

class Storyteller {
 public:
  Storyteller(std::span<const Event> events, const StoryOptions& options)
      : events_(events), options_(options), slow_reads_(options.slowest), slow_preps_(options.slowest) {
    story_.events = events.size();
    story_.begin = events.front().time;
    story_.end = events.back().time;
    story_.seconds = at(events.back().time);
    story_.windows.resize(std::max(options.windows, 1u));
    story_.window_seconds = story_.seconds / static_cast<double>(story_.windows.size());
  }

  RunStory tell() {
    for (const Event& event : events_) take(event);
    set_depths(story_.windows.size());
    story_.prep_threads = static_cast<unsigned>(workers_.size());
    story_.slow_reads = slow_reads_.take();
    story_.slow_preps = slow_preps_.take();
    for (auto& [number, epoch] : epochs_) story_.epochs.push_back(epoch);
    for (auto& [number, step] : steps_) story_.steps.push_back(step);
    return std::move(story_);
  }

 private:
  void take(const Event& event);
  void take_ask(const Event& event);
  void take_batch(const Event& event);
  void take_request(const Event& event);
  void take_prep(const Event& event);
  void read_done(const Event& event);
  void waited(const Event& event);
  void depth_changed(const Event& event);

  double at(Time time) const {
    return static_cast<double>(static_cast<std::uint64_t>(time.count()) -
                               static_cast<std::uint64_t>(story_.begin.count())) *
           1e-9;
  }
  std::size_t window_at(double time) const {
    if (story_.window_seconds <= 0) return 0;
    return std::min(static_cast<std::size_t>(time / story_.window_seconds), story_.windows.size() - 1);
  }
  // Calls add(window, seconds) for every window that [from, to] touches.
  template <typename Add>
  void spread(double from, double to, const Add& add) {
    for (std::size_t i = window_at(from); i <= window_at(to); ++i) {
      const double begin = static_cast<double>(i) * story_.window_seconds;
      const double seconds = std::min(to, begin + story_.window_seconds) - std::max(from, begin);
      if (seconds > 0) add(story_.windows[i], seconds);
    }
  }

  EpochStory* epoch(Epoch number);
  StepStory* step_of(const Event& event);
  void set_depths(std::size_t end);
  std::uint64_t samples_of(const Event& delivered);

  std::span<const Event> events_;
  StoryOptions options_;
  RunStory story_;
  std::map<Epoch, EpochStory> epochs_;
  std::map<std::pair<Epoch, std::uint64_t>, StepStory> steps_;
  std::map<std::pair<Epoch, std::uint64_t>, std::uint64_t> opened_;  // samples of batches that are not delivered yet
  std::unordered_map<SampleId, Epoch> asked_;                        // who waits for a read
  Epoch asking_ = 0;                                                 // where the stream stands
  std::map<std::uint16_t, double> workers_;                          // when each was done last
  std::optional<Epoch> left_out_;                                    // the last epoch that was one too many
  double consumer_ = 0;                                              // when the last batch was taken
  std::array<std::optional<unsigned>, kOrigins> depth_{};
  std::size_t depths_set_ = 0;  // windows
  Slowest slow_reads_;
  Slowest slow_preps_;
};

EpochStory* Storyteller::epoch(Epoch number) {
  const auto found = epochs_.find(number);
  if (found != epochs_.end()) return &found->second;
  if (epochs_.size() == kMostEpochs) return nullptr;
  EpochStory& added = epochs_[number];
  added.epoch = number;
  return &added;
}

// Of an event that has a position.
StepStory* Storyteller::step_of(const Event& event) {
  if (!options_.steps || story_.global_batch == 0) return nullptr;
  const std::uint64_t number = event.position / story_.global_batch;
  StepStory& step = steps_[{event.epoch, number}];
  step.epoch = event.epoch;
  step.step = number;
  return &step;
}

void Storyteller::take(const Event& event) {
  switch (event.kind) {
    case EventKind::kOpen:
      if (story_.opened) return;
      story_.opened = true;
      story_.samples = event.a;
      story_.global_batch = event.b;
      story_.world = std::max(static_cast<std::uint32_t>(event.c >> 32), 1u);
      story_.rank = static_cast<std::uint32_t>(event.c);
      return;
    case EventKind::kHit:
    case EventKind::kJoined:
    case EventKind::kAsked:
      return take_ask(event);
    case EventKind::kReadDone:
      return read_done(event);
    case EventKind::kReadRetried:
      ++story_.counts.retried_reads;
      story_.counts.retries += event.b;
      return;
    case EventKind::kPrepDone:
      return take_prep(event);
    case EventKind::kDepth:
      return depth_changed(event);
    case EventKind::kDiskDropped:
      ++story_.counts.disk_dropped;
      return;
    case EventKind::kEvicted:
      ++story_.counts.evicted;
      return;
    case EventKind::kSpared:
      ++story_.counts.spared;
      return;
    case EventKind::kBypassed:
      ++story_.counts.bypassed;
      return;
    default:
      take_batch(event);
      take_request(event);
  }
}

void Storyteller::take_batch(const Event& event) {
  switch (event.kind) {
    case EventKind::kSlotOpened:
      opened_[{event.epoch, event.a}] = event.c;
      return;
    case EventKind::kWaited:
      return waited(event);
    case EventKind::kEpochEnd:
      if (EpochStory* of = epoch(event.epoch); of != nullptr && of->batches > 0) of->end = at(event.time);
      return;
    case EventKind::kReplaced:
      ++story_.counts.replaced;
      if (EpochStory* of = epoch(event.epoch)) ++of->replaced;
      return;
    case EventKind::kSeek:
      ++story_.counts.seeks;
      opened_.clear();
      asked_.clear();
      asking_ = event.epoch;
      return;
    default:
      return;
  }
}

void Storyteller::take_request(const Event& event) {
  if (event.kind == EventKind::kHedged) ++story_.counts.hedges;
  if (event.kind == EventKind::kThrottled) ++story_.counts.throttled;
  if (event.kind == EventKind::kPaused) ++story_.counts.pauses;
}

void Storyteller::take_ask(const Event& event) {
  const bool is_fill = event.kind == EventKind::kAsked && (event.c >> 8 & 1) != 0;
  if (is_fill) return;
  asking_ = std::max<Epoch>(asking_, event.epoch);
  // Who joins a read that nobody waited for, a fill, is the one for whom it is counted.
  const bool first = event.kind != EventKind::kHit && asked_.emplace(event.a, event.epoch).second;
  const bool missed = event.kind == EventKind::kAsked || first;
  ++(event.kind == EventKind::kHit      ? story_.counts.hits
     : event.kind == EventKind::kJoined ? story_.counts.joined
                                        : story_.counts.misses);
  EpochStory* const of = epoch(event.epoch);
  if (of != nullptr && !missed) of->memory_bytes += event.b;
  StepStory* const step = step_of(event);
  if (step == nullptr) return;
  ++step->samples;
  step->bytes += event.b;
  if (!missed) return;
  ++step->misses;
  step->missed_bytes += event.b;
}

void Storyteller::read_done(const Event& event) {
  const ReadFields read = ReadFields::unpack(event.position);
  const auto origin = static_cast<std::size_t>(read.origin) % kOrigins;
  const Duration took = to_duration(event.c);
  const double time = at(event.time);
  ReadsStory& reads = story_.reads[origin];
  reads.bytes += event.b;
  reads.fills += read.fill ? 1 : 0;
  reads.took.add(took);
  story_.windows[window_at(time)].read_bytes[origin] += event.b;
  slow_reads_.add({.id = event.a, .took = took, .length = event.b, .at = time, .origin = Origin(origin)});
  const auto asked = asked_.find(event.a);
  if (EpochStory* of = epoch(asked != asked_.end() ? asked->second : asking_)) of->read_bytes[origin] += event.b;
  if (asked != asked_.end()) asked_.erase(asked);
}

void Storyteller::take_prep(const Event& event) {
  const Duration took = to_duration(event.b);
  const double end = at(event.time);
  story_.prep.add(took);
  slow_preps_.add({.id = event.a, .took = took, .at = end});
  double& last = workers_[event.thread];
  const double begin = std::max(last, end - to_seconds(took));
  last = end;
  story_.prep_busy += end - begin;
  spread(begin, end, [](StoryWindow& window, double seconds) { window.prep_busy += seconds; });
}

// In a host another job may have fed the batch: then all are taken to be as large as the first.
std::uint64_t Storyteller::samples_of(const Event& delivered) {
  const auto opened = opened_.find({delivered.epoch, delivered.a});
  if (opened == opened_.end()) return story_.global_batch / story_.world;
  const std::uint64_t samples = opened->second;
  opened_.erase(opened);
  return samples;
}

void Storyteller::waited(const Event& event) {
  const double end = at(event.time);
  const double prep_begin = std::max(consumer_, end - to_seconds(to_duration(event.c)));
  const double begin = std::max(consumer_, prep_begin - to_seconds(to_duration(event.b)));
  consumer_ = end;
  const Waits waits{.fetch = prep_begin - begin, .prep = end - prep_begin};
  spread(begin, prep_begin, [](StoryWindow& window, double seconds) { window.waits.fetch += seconds; });
  spread(prep_begin, end, [](StoryWindow& window, double seconds) { window.waits.prep += seconds; });
  ++story_.windows[window_at(end)].batches;
  if (story_.batches++ == 0) story_.consumed_from = begin;
  story_.consumed_until = end;
  story_.waits.fetch += waits.fetch;
  story_.waits.prep += waits.prep;
  const std::uint64_t samples = samples_of(event);
  story_.delivered += samples;
  if (EpochStory* of = epoch(event.epoch)) {
    if (of->batches++ == 0) of->begin = begin;
    of->end = end;
    of->samples += samples;
    of->waits.fetch += waits.fetch;
    of->waits.prep += waits.prep;
  } else if (left_out_ != event.epoch) {
    left_out_ = event.epoch;
    ++story_.epochs_left_out;
  }
  if (!options_.steps) return;
  StepStory& step = steps_[{event.epoch, event.a}];
  step.epoch = event.epoch;
  step.step = event.a;
  step.waits.fetch += waits.fetch;
  step.waits.prep += waits.prep;
}

// Windows that ended before keep what was chosen until then.
void Storyteller::set_depths(std::size_t end) {
  for (; depths_set_ < end; ++depths_set_) story_.windows[depths_set_].depth = depth_;
}

void Storyteller::depth_changed(const Event& event) {
  set_depths(window_at(at(event.time)));
  depth_[event.c % kOrigins] = static_cast<unsigned>(std::min<std::uint64_t>(event.a, 1u << 20));
}

}  // namespace

// Between n batches lie n − 1 steps of the learner.
std::optional<double> learner_rate(const RunStory& story) {
  constexpr std::uint64_t kLeast = 4;
  const double computing = story.consumed_seconds() - story.waits.total();
  if (story.batches < kLeast || story.delivered == 0 || computing <= 0) return std::nullopt;
  const auto batches = static_cast<double>(story.batches);
  return static_cast<double>(story.delivered) / batches * (batches - 1) / computing;
}

const char* limit_name(Limit limit) {
  switch (limit) {
    case Limit::kFetch:
      return "fetch";
    case Limit::kPrep:
      return "prep";
    default:
      return "consumer";
  }
}

Limit Waits::limit(double seconds) const {
  if (total() <= kNoStall * seconds || total() <= 0) return Limit::kConsumer;
  return fetch >= prep ? Limit::kFetch : Limit::kPrep;
}

RunStory story_of(std::span<const Event> events, const StoryOptions& options) {
  return Storyteller(events, options).tell();
}

}  // namespace foreload
