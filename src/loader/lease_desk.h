// LeaseDesk: takes batches out of a ring, as one of its readers, gives them out and takes them back. It outlives the
// loader while batches are on lease: it owns the ring and the shape of its tensors.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/mutex.h"
#include "foreload/batch.h"
#include "pipeline/pipeline.h"
#include "pipeline/ring.h"

namespace foreload {

class LeaseDesk : public std::enable_shared_from_this<LeaseDesk> {
 public:
  // `stream`: whose ring it is, if another job's.
  LeaseDesk(std::shared_ptr<Ring> ring, unsigned reader, TensorSpec spec, std::uint64_t stream = 0);
  ~LeaseDesk();

  Ring& ring() { return *ring_; }
  unsigned reader() const { return reader_; }
  bool is_own() const { return reader_ == Ring::kOwnReader; }  // this process feeds the ring
  std::uint64_t stream() const { return stream_; }
  const TensorSpec& spec() const { return spec_; }

  // REQUIRES: `slot` was taken from the ring.
  Batch lend(std::uint32_t slot);
  void give_back(std::uint32_t slot) FORELOAD_EXCLUDES(mutex_);  // any thread
  // Who is told about free slots of the own ring; null: nobody.
  void tell(Pipeline* pipeline) FORELOAD_EXCLUDES(mutex_);

 private:
  std::shared_ptr<Ring> ring_;
  unsigned reader_;
  TensorSpec spec_;
  std::uint64_t stream_;
  pid_t owner_;
  Mutex mutex_;
  Pipeline* pipeline_ FORELOAD_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace foreload
