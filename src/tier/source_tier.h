// SourceTier: the bottom of the hierarchy: reads samples from where they originally are. Turns ids into reads,
// keeps the files of tar shards open, retries what may pass, and emulates slow storage when asked to. Files are read by
// the engine, objects by an ObjectReader, which starts with the first of them. The disk tier's reads go through the
// same engine. One thread uses it, except wake() and object_stats().
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/files.h"
#include "base/read_engine.h"
#include "foreload/result.h"
#include "foreload/source.h"
#include "source/throttle.h"
#include "store/object_reader.h"

namespace foreload {

struct SourceRead {
  SampleId id = 0;
  Status status;    // kDataChanged, kIo, or kInvalid for a path that leaves its root
  Duration took{};  // from start() to the last byte
  unsigned retries = 0;
};

// A range of a sample's bytes.
struct SamplePart {
  Bytes offset = 0;
  Bytes length = 0;
};

struct SourceTierOptions {
  bool direct = false;  // files are opened anew for every read: O_DIRECT descriptors are the engine's own
  ObjectReaderOptions objects{};
};

class SourceTier {
 public:
  // `source` must outlive this.
  SourceTier(const Source& source, std::unique_ptr<ReadEngine> engine, std::optional<Throttle> throttle,
             SourceTierOptions options = {});

  // What the reader of objects decides. REQUIRES: nothing was started yet; null, or it outlives this.
  void record_to(EventRecord* record) { options_.objects.record = record; }

  const char* engine_name() const { return engine_->name(); }
  unsigned max_depth() const { return engine_->max_depth(); }
  unsigned in_flight() const { return static_cast<unsigned>(flights_.size() - free_.size()); }

  // Begins to fill `into` with the sample; it is submitted by the next wait(). Of two parts only these are filled, each
  // in its place; they count as two reads in flight, and are reported as one.
  // REQUIRES: in_flight() < max_depth(), into.size() = the sample's length, `into` lives until it is reported.
  void start(SampleId id, std::span<std::byte> into, Time now);
  void start_parts(SampleId id, std::span<std::byte> into, const std::array<SamplePart, 2>& parts, Time now);
  // The same from an open file of another tier: not retried, not slowed down. REQUIRES: `fd` stays open meanwhile.
  void start_from(int fd, Bytes offset, SampleId id, std::span<std::byte> into, Time now);
  // Appends what has ended. Waits for the first until `deadline` or wake().
  void wait(std::vector<SourceRead>& done, Time deadline);
  void wake() { engine_->wake(); }
  // In a hurry flights end as soon as the engine is done with them: no pauses, no emulated slowness.
  // Objects that are still on their way fail.
  void hurry(bool on);

  ObjectStats object_stats() const { return object_counters_.read(); }  // any thread

 private:
  struct OpenFile {
    Descriptor descriptor;
    unsigned users = 0;
  };
  struct Flight {
    SampleId id = 0;
    Extent extent;
    std::span<std::byte> into;
    Time started{};
    Time not_before{};  // when the emulated storage delivers
    unsigned attempt = 0;
    OpenFile* file = nullptr;
    int other_file = -1;                // another tier's
    std::optional<std::size_t> twin{};  // the flight of the other part
    bool ended = false;                 // and waits for its twin
    Status status;
  };
  struct Timer {
    Time at;
    std::size_t flight;
    bool retry;  // submit it again; otherwise report it
    bool operator>(const Timer& other) const { return at > other.at; }
  };

  std::size_t free_flight();
  std::size_t start_part(SampleId id, std::span<std::byte> into, const SamplePart& part, Time now);
  void enqueue(std::size_t index);
  void finish(std::size_t index, std::vector<SourceRead>& done);
  void submit(std::vector<SourceRead>& done);
  void submit_objects(std::vector<SourceRead>& done);
  void on_result(const ReadResult& result, std::vector<SourceRead>& done);
  void on_result(const ObjectResult& result, std::vector<SourceRead>& done);
  void deliver(std::size_t index, std::vector<SourceRead>& done);
  void run_timers(std::vector<SourceRead>& done);
  bool retry_later(Flight& flight, std::size_t index, const ReadResult& result);
  Error describe(const Flight& flight, const ReadResult& result) const;
  Error describe(const Flight& flight, const ObjectResult& result) const;
  OpenFile* shared_file(const Extent& extent);

  const Source& source_;
  std::unique_ptr<ReadEngine> engine_;
  std::optional<Throttle> throttle_;
  SourceTierOptions options_;
  std::uint64_t jitter_;
  bool hurry_ = false;
  std::vector<std::unique_ptr<Flight>> flights_;
  std::vector<std::size_t> free_;
  std::vector<ReadJob> queued_;
  std::vector<ReadResult> results_;
  std::vector<ObjectJob> queued_objects_;
  std::vector<ObjectResult> object_results_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  std::unordered_map<std::uint64_t, OpenFile> files_;  // at most kOpenFiles
  ObjectCounters object_counters_;
  std::unique_ptr<ObjectReader> objects_;  // wakes the engine, writes into flights: the first to go
};

}  // namespace foreload
