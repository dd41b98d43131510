// ReadEngine: many file reads at once. Two twins behind one interface: io_uring (submissions batched)
// and a pool of threads with pread. Not thread-safe except wake(): one thread submits and waits.
//
// A job is a whole read: open (below a root, never leaving it) unless a descriptor is given, fstat
// against the expected stamp, read until the range is complete (short reads and EINTR continue), close.
// Nothing is retried here: an error is reported once, with the errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "foreload/source.h"
#include "foreload/types.h"

namespace foreload {

struct ReadJob {
  std::uint64_t tag = 0;
  int fd = -1;  // an open file, or -1: open `path` below `root`
  int root = -1;
  const char* path = nullptr;  // must live until the job is done
  Bytes offset = 0;
  std::span<std::byte> into{};  // its size is the length; must live until the job is done
  FileStamp expect{};
  bool stamped = true;  // false: the file may change meanwhile, and `expect` means nothing
};

enum class ReadOutcome {
  kDone,
  kChanged,  // the file's size or time differs from `expect`, or it ended early
  kRefused,  // the path leaves the root or is no regular file
  kFailed,   // `error_number` says why
};

struct ReadResult {
  std::uint64_t tag = 0;
  ReadOutcome outcome = ReadOutcome::kDone;
  int error_number = 0;
  FileStamp found{};  // with kChanged
};

class ReadEngine {
 public:
  virtual ~ReadEngine() = default;  // waits for the jobs in flight

  virtual const char* name() const = 0;  // "uring" or "threads"
  virtual unsigned max_depth() const = 0;
  // Takes all jobs. REQUIRES: jobs in flight + jobs.size() ≤ max_depth().
  virtual void submit(std::span<const ReadJob> jobs) = 0;
  // Appends finished jobs; waits for the first one until `deadline` or wake(). Returns at once if
  // wake() was called since the last wait.
  virtual void wait(std::vector<ReadResult>& results, Time deadline) = 0;
  virtual void wake() = 0;  // any thread
};

// For tests: sees the raw result of every read, bytes or -errno, and says what the engine is to believe
// instead. Called from any thread of the engine.
class ReadFault {
 public:
  virtual ~ReadFault() = default;
  virtual int apply(int result) = 0;
};

struct ReadEngineOptions {
  std::string kind{};    // "uring", "threads" or "": io_uring where the kernel allows it
  unsigned depth = 128;  // jobs in flight at most
  bool direct = false;   // O_DIRECT through aligned bounce buffers
  // With `direct`: the longest job. Bounce memory is at most depth × (bounce_bytes + 12 KiB); longer
  // jobs are read piece by piece.
  Bytes bounce_bytes = 0;
  ReadFault* fault = nullptr;  // must outlive the engine
};

// Falls back from io_uring to threads where it is forbidden, missing, too old (before Linux 5.11) or
// allowed too little memory, unless `kind` insists. Depths beyond 4,096 are cut: see max_depth().
Result<std::unique_ptr<ReadEngine>> open_read_engine(const ReadEngineOptions& options);

}  // namespace foreload
