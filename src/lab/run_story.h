// RunStory: what an event record tells about a run. Pure: events in, plain values out. The record is untrusted:
// whatever the events say, the story is of bounded size apart from `steps`, and nothing overflows; what can not have
// been (a wait that began before the one before it ended) is cut.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/event_record.h"
#include "foreload/types.h"
#include "lab/latencies.h"
#include "policy/cost_model.h"

namespace foreload {

// Who held up the others. kConsumer: next() hardly waited.
enum class Limit : std::uint8_t { kConsumer, kFetch, kPrep };
const char* limit_name(Limit limit);

// Seconds that next() waited.
struct Waits {
  double fetch = 0;
  double prep = 0;

  double total() const { return fetch + prep; }
  // Of a piece of the run that took `seconds`: less than a twentieth is no stall.
  Limit limit(double seconds) const;
};

struct EpochStory {
  Epoch epoch = 0;
  double begin = 0;  // seconds since the record's first event
  double end = 0;
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  Waits waits;
  Bytes memory_bytes = 0;
  std::array<Bytes, kOrigins> read_bytes{};
  std::uint64_t replaced = 0;

  double seconds() const { return end - begin; }
};

struct StoryWindow {
  Waits waits;
  std::array<Bytes, kOrigins> read_bytes{};
  double prep_busy = 0;                                   // seconds, over all threads
  std::array<std::optional<unsigned>, kOrigins> depth{};  // that the pacer chose, at the window's end
  std::uint64_t batches = 0;                              // delivered
};

struct SlowSample {
  SampleId id = 0;
  Duration took{};
  Bytes length = 0;                 // 0: not known
  double at = 0;                    // when it ended: seconds since the first event
  Origin origin = Origin::kSource;  // of a read
};

struct ReadsStory {
  Bytes bytes = 0;
  std::uint64_t fills = 0;  // of them: ahead of need
  Latencies took;
};

// What the learner got in one step, of one global batch.
struct StepStory {
  Epoch epoch = 0;
  std::uint64_t step = 0;
  Waits waits;
  std::uint64_t samples = 0;
  std::uint64_t misses = 0;  // of them: had to be read for it
  Bytes bytes = 0;
  Bytes missed_bytes = 0;
};

// How often something happened that is worth knowing.
struct StoryCounts {
  std::uint64_t retried_reads = 0;
  std::uint64_t retries = 0;
  std::uint64_t hedges = 0;
  std::uint64_t throttled = 0;
  std::uint64_t pauses = 0;  // of requests that failed
  std::uint64_t evicted = 0;
  std::uint64_t spared = 0;
  std::uint64_t bypassed = 0;
  std::uint64_t replaced = 0;
  std::uint64_t disk_dropped = 0;
  std::uint64_t seeks = 0;
  std::uint64_t hits = 0;
  std::uint64_t joined = 0;
  std::uint64_t misses = 0;
};

struct RunStory {
  std::uint64_t events = 0;
  Time begin{};         // of the first event, by the clock of its machine
  Time end{};           // of the last one
  double seconds = 0;   // between them
  bool opened = false;  // the record has its beginning: the next four are known
  std::uint64_t samples = 0;
  std::uint64_t global_batch = 0;
  std::uint32_t rank = 0;
  std::uint32_t world = 1;

  double consumed_from = 0;   // seconds until the first batch was asked for
  double consumed_until = 0;  // and until the last one was taken
  Waits waits;
  std::uint64_t batches = 0;
  std::uint64_t delivered = 0;  // samples
  std::vector<EpochStory> epochs;
  std::uint64_t epochs_left_out = 0;  // behind those

  double window_seconds = 0;
  std::vector<StoryWindow> windows;

  std::array<ReadsStory, kOrigins> reads;
  Latencies prep;
  double prep_busy = 0;  // seconds, over all threads
  unsigned prep_threads = 0;
  StoryCounts counts;
  std::vector<SlowSample> slow_reads;  // the slowest first, every sample once
  std::vector<SlowSample> slow_preps;
  std::vector<StepStory> steps;  // in their order; when asked for

  double consumed_seconds() const { return consumed_until - consumed_from; }
  Limit limit() const { return waits.limit(consumed_seconds()); }
  // How much of their time the threads that prepared were at it.
  double prep_share() const { return prep_threads > 0 && seconds > 0 ? prep_busy / (prep_threads * seconds) : 0; }
};

struct StoryOptions {
  unsigned windows = 60;
  unsigned slowest = 20;
  bool steps = false;
};

// Samples per second that the learner takes while it does not wait: its accelerator's rate. Nothing: there were too few
// batches to say.
std::optional<double> learner_rate(const RunStory& story);

// REQUIRES: `events` are in the order of time, as read_event_record() gives them, and there is one.
RunStory story_of(std::span<const Event> events, const StoryOptions& options = {});

}  // namespace foreload
