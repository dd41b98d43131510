// DepthControl: how many reads to keep in flight at one origin. Depth follows throughput: while all allowed reads are
// in flight and doubling the depth brings noticeably more bytes per second, it doubles; when it does not, the smaller
// depth is kept and tried anew from time to time. Time comes in as an argument.
#pragma once

#include "foreload/types.h"

namespace foreload {

class DepthControl {
 public:
  explicit DepthControl(unsigned max_depth);

  unsigned depth() const { return depth_; }
  double bytes_per_second() const { return rate_; }  // in the last window; 0: not measured yet

  // A read ended; `in_flight` counts the others that were there meanwhile. Returns whether a window ended with it.
  bool on_read_done(Time now, Bytes bytes, unsigned in_flight);

 private:
  void end_window(Time now);

  unsigned max_depth_;
  unsigned depth_;
  unsigned tried_from_ = 0;  // the depth before the running trial; 0: no trial
  double rate_before_ = 0;   // at tried_from_
  double rate_ = 0;
  unsigned calm_windows_ = 0;  // since the last trial failed
  Time window_start_{-1};
  Bytes window_bytes_ = 0;
  unsigned window_reads_ = 0;
  unsigned window_limited_ = 0;  // reads that ended while the depth was used up
};

}  // namespace foreload
