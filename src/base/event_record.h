// EventRecord: what happened when, in one file. Fixed 48-byte little-endian events; each thread appends
// to the shared buffer, a full buffer is written out. Serves replay, analysis and trace export; the
// format is described in docs/event-record.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

enum class EventKind : std::uint16_t {
  kOpen = 1,         // a: samples, b: global batch, c: world << 32 | rank
  kSlotOpened = 2,   // a: step, b: slot, c: samples in the batch
  kHit = 3,          // bytes found in memory. a: id, b: length
  kReadStarted = 4,  // a: id, b: length, c: fill << 48 | asked << 40 | origin << 32 | other reads in flight there
  kReadDone = 5,     // a: id, b: length, c: nanoseconds since it was submitted; position: as c of kReadStarted
  kReadRetried = 6,  // the read that ended needed more than one attempt. a: id, b: retries
  kPrepStarted = 7,  // a: id, b: length
  kPrepDone = 8,     // a: id, b: nanoseconds
  kPublished = 9,    // a: step, b: slot
  kWaited = 10,      // next() had to wait. a: step, b: nanoseconds for fetch, c: nanoseconds for prep
  kDelivered = 11,   // a: step, b: slot
  kReplaced = 13,    // a bad sample. a: its id, c: which substitute comes next
  kDepth = 14,       // the pacer's choice. a: depth, b: bytes per second, c: origin
  kEpochEnd = 15,
  kSeek = 16,
  kJoined = 17,       // bytes were on their way already. a: id, b: length
  kDiskDropped = 18,  // the disk had the sample, but wrong: it was read from the source. a: id, b: length
  kAsked = 19,        // it is not in memory and waits for its origin. a: id, b: length, c: fill << 8 | origin. A fill
                      // also has the tightest need: c: batches left << 16, position: bytes
  kRouted = 20,       // not only the source has it. a: id, b: length, c: batches until it is needed << 16 | the nearer
                      // origin << 8 | chosen origin
  kPacing = 21,       // a pacer begins. a: the engine's depth, b: samples per batch, c: objects << 32 | slots
  kPart = 22,         // only a part of the sample is needed. a: its length, b: that of the part, as it is expected,
                      // c: origin << 8 | is the part read?
  kEvicted = 23,      // a sample left its home in memory. a: id, b: length, c: the newcomer
  kSpared = 24,       // the same, but it was in use and stays. a: id, b: length, c: the newcomer
  kBypassed = 25,     // a policy that evicts gave no home. a: id, b: length
  // Requests to object stores. A group is what one request fetches, named by the tag of its first range; `running`:
  // requests under way; `delay`: the silence after which a request is sent twice, nanoseconds; `window`: its size now.
  kRequests = 26,   // begins. position: jitter, a: first window << 32 | largest, b: longest, c: small gap << 32 | large
  kRetryRule = 27,  // position: attempts, nanoseconds of pauses: a: first, b: longest, c: longest that a server gets
  kWanted = 28,     // a range waits. position: tag, a: object, b: offset, c: length
  kGrouped = 29,    // position: group, a: running << 32 | ranges (0: it may still grow), b: offset, c: length
  kHedged = 30,     // sent twice. position: group, a: running, b: nanoseconds of silence, c: delay
  kRequestDone = 31,  // position: delay, a: bytes, b: nanoseconds of silence, c: limited << 32 | window
  kStopped = 32,      // the twin of a complete one. position: delay, b: nanoseconds of silence
  kThrottled = 33,    // 429 or 503. c: window
  kPaused = 34,       // failed. position: group, a: doubts << 32 | attempts, b: asked pause, c: pause, nanoseconds
  kSentAgain = 35,    // after its pause. position: group, a: running
  kCancelled = 36,    // a: ranges that waited, b: groups in a pause
};

struct Event {
  Time time{};
  EventKind kind{};
  std::uint16_t thread = 0;
  std::uint32_t epoch = 0;
  Position position = 0;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint64_t c = 0;
};

class EventRecord {
 public:
  static Result<std::unique_ptr<EventRecord>> create(const std::string& path);
  ~EventRecord();  // writes what is buffered

  void append(const Event& event);  // any thread
  Status close();                   // the first write error, if there was one

 private:
  class File;
  explicit EventRecord(std::unique_ptr<File> file);
  std::unique_ptr<File> file_;
};

// In the order of time. Untrusted: what is no record, damaged or larger than memory is an error that names it.
Result<std::vector<Event>> read_event_record(const std::string& path);
// The same of bytes that are there; `name` is for messages.
Result<std::vector<Event>> parse_event_record(std::span<const std::byte> bytes, const std::string& name);

}  // namespace foreload
