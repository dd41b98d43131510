// The path of a sample from the disk tier, alone: no consumer, no prep, no pacing. Beside it, fio on the same file.
#pragma once

#include <memory>
#include <string>

#include "foreload/result.h"
#include "foreload/schedule.h"
#include "foreload/source.h"
#include "policy/eviction.h"
#include "probe/read_stream.h"
#include "tier/tier_stack.h"

namespace foreload {

struct DiskPathOptions {
  std::string folder{};  // of the disk cache; must exist. What is there already is used
  bool direct = false;   // past the page cache
  unsigned depth = 32;   // reads at once
};

class DiskPath {
 public:
  // Writes all samples of `source` that the folder lacks. `source` must outlive this.
  static Result<std::unique_ptr<DiskPath>> open(const Source& source, const DiskPathOptions& options);

  // Random samples, always `depth` at once, each compared with its hash and dropped, until so many bytes have come or
  // so much time has passed since the window before ended; reads go on from one window to the next.
  Result<ReadWindow> window(Bytes bytes, Duration time);
  // Bytes of samples per second, from a standing start.
  Result<double> rate(Duration duration);
  std::string data_file() const { return tiers_->disk()->store().path() + "/data"; }

 private:
  DiskPath(const Source& source, const DiskPathOptions& options)
      : source_(source), options_(options), order_({.samples = source.size(), .seed = 1}) {}
  Status fill(DiskStore& store) const;
  bool ask_next();
  void rest();

  const Source& source_;
  DiskPathOptions options_;
  Schedule order_;
  Position asked_ = 0;
  Time window_start_{};
  Placement nowhere_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<TierStack> tiers_;
};

struct FioJob {
  std::string file{};
  Bytes block = 0;
  unsigned depth = 32;
  bool direct = false;
  Duration duration{};
};
// Bytes per second of random reads. kNotFound: there is no fio.
Result<double> fio_rate(const FioJob& job);

}  // namespace foreload
