// ReadTask: one job on its way. An engine does the I/O that the task asks for and feeds back the raw result
// (a descriptor, a number of bytes, or -errno); all that must be alike in both engines is decided here. One
// thread at a time. Reusable: start() begins the next job.
#pragma once

#include <cstdlib>
#include <memory>

#include "base/files.h"
#include "base/read_engine.h"

namespace foreload {

class ReadTask {
 public:
  enum class Next { kOpen, kRead, kFinished };

  // One read; `length` > 0.
  struct Piece {
    int fd = -1;
    std::byte* into = nullptr;
    unsigned length = 0;
    Bytes offset = 0;
  };

  // `options` must outlive the task.
  explicit ReadTask(const ReadEngineOptions& options) : options_(&options) {}

  Next start(const ReadJob& job);
  const ReadJob& job() const { return job_; }
  bool opening() const { return next_ == Next::kOpen; }
  bool opens_direct() const { return direct_; }  // open with O_DIRECT

  Next opened(int result);
  Piece piece();  // what to read now
  Next read_returned(int result);

  const ReadResult& result() const { return result_; }
  void drop();  // closes what the task has opened

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  Next examine();
  bool prepare_bounce();
  Next finish(ReadOutcome outcome, int error_number = 0);
  Next ended_early();
  Next failed_read(int error_number);
  Bytes end() const { return job_.offset + job_.into.size(); }

  const ReadEngineOptions* options_;
  ReadJob job_;
  ReadResult result_;
  Next next_ = Next::kFinished;
  int fd_ = -1;
  Descriptor owned_;
  Bytes done_ = 0;  // bytes of the job that have arrived
  unsigned attempts_ = 0;
  bool direct_ = false;
  std::unique_ptr<std::byte, Free> bounce_;  // kept from job to job
  std::size_t bounce_size_ = 0;
};

}  // namespace foreload
