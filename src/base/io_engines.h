// The two read engines, as read_engine.cc sees them.
#pragma once

#include <memory>

#include "base/read_engine.h"

namespace foreload {

// An engine, or why there is none.
struct RingOpening {
  std::unique_ptr<ReadEngine> engine;
  int error_number = 0;  // EOPNOTSUPP: the kernel's io_uring is too old
};

// REQUIRES for both: options.depth > 0.
RingOpening open_ring_engine(const ReadEngineOptions& options);
Result<std::unique_ptr<ReadEngine>> open_pool_engine(const ReadEngineOptions& options);

}  // namespace foreload
