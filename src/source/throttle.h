// Throttle: emulated slow storage for tests and demos. A token bucket in a file of 64 bytes that is mapped by
// everyone who reads, so that processes, also in other network namespaces, share one bandwidth.
#pragma once

#include <memory>
#include <string>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

class Throttle {
 public:
  // "100MB/s,5ms,bucket=FILE": bandwidth, latency per request, shared bucket. Each part is optional.
  static Result<Throttle> open(const std::string& spec);
  Throttle(Throttle&&) noexcept;
  Throttle& operator=(Throttle&&) noexcept;
  ~Throttle();

  // Takes `bytes` out of the bucket; the storage would deliver them at the returned time, ≥ now. Any thread.
  Time reserve(Time now, Bytes bytes);

 private:
  struct Bucket;
  explicit Throttle(std::unique_ptr<Bucket> bucket);
  std::unique_ptr<Bucket> bucket_;
};

}  // namespace foreload
