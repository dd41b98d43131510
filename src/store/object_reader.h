// ObjectReader: reads ranges of objects, many at once, on a thread of its own. Neighbours that wait together share a
// request; slow requests are sent twice; what may pass is asked again. Every answer is checked against the object's
// stamp and the range that was asked for before a byte of it is kept, and bytes count only when all of them came.
// submit(), take() and hurry() belong to one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/event_record.h"
#include "base/mutex.h"
#include "base/read_engine.h"
#include "base/thread.h"
#include "foreload/loader.h"
#include "foreload/result.h"
#include "policy/request_policy.h"
#include "store/http_transfer.h"
#include "store/object_store.h"

namespace foreload {

struct ObjectJob {
  std::uint64_t tag = 0;  // differs from those of all jobs under way
  const ObjectStore* store = nullptr;
  std::string_view key{};    // must live until the job is reported
  std::uint64_t object = 0;  // equal: same object
  Bytes offset = 0;
  std::span<std::byte> into{};  // its size is the length, not 0; must live until the job is reported
  FileStamp expect{};           // mtime_ns 0: the server names no validator, only the size counts
};

struct ObjectResult {
  std::uint64_t tag = 0;
  ReadOutcome outcome = ReadOutcome::kDone;  // or kChanged, kFailed
  FileStamp found{};                         // with kChanged
  Error error{};                             // with kFailed: what was asked, how often, and why it failed
  unsigned attempts = 1;
};

// What was asked of stores. Any thread may read it.
struct ObjectCounters {
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> retries{0};
  std::atomic<std::uint64_t> hedges{0};
  std::atomic<std::uint64_t> throttled{0};
  std::atomic<std::uint64_t> bytes{0};

  ObjectStats read() const { return {requests, retries, hedges, throttled, bytes}; }
};

struct ObjectReaderOptions {
  HttpOptions http{.retry = {.attempts = 12, .longest_pause = std::chrono::seconds(5)}};
  CoalesceOptions coalesce{};
  RequestWindowOptions window{};
  EventRecord* record = nullptr;  // receives what is decided, and must outlive the reader; may be null
};

class ObjectRequests;

class ObjectReader {
 public:
  // `done` is called on the reader's thread whenever there is something to take. `counters` must outlive this.
  static Result<std::unique_ptr<ObjectReader>> start(const ObjectReaderOptions& options, ObjectCounters& counters,
                                                     std::function<void()> done);
  ~ObjectReader();  // breaks off what is under way; its spans are not touched afterwards

  // Jobs of one call are considered together.
  void submit(std::span<const ObjectJob> jobs);
  // Appends what has ended, in any order.
  void take(std::vector<ObjectResult>& results);
  // In a hurry all jobs fail at once.
  void hurry(bool on);

 private:
  ObjectReader(std::unique_ptr<ObjectRequests> requests, std::function<void()> done);
  void run();
  void pass_on(std::vector<ObjectResult>& ended);

  std::function<void()> done_;
  std::unique_ptr<ObjectRequests> requests_;  // the thread's, except wake()
  Mutex mutex_;
  std::vector<ObjectJob> submitted_ FORELOAD_GUARDED_BY(mutex_);
  std::vector<ObjectResult> ended_ FORELOAD_GUARDED_BY(mutex_);
  bool hurry_ FORELOAD_GUARDED_BY(mutex_) = false;
  bool stopping_ FORELOAD_GUARDED_BY(mutex_) = false;
  std::optional<Thread> thread_;
};

}  // namespace foreload
