// DepthControl: how many reads, or requests, to keep under way at one place. It follows throughput: while all allowed
// ones are under way and doubling them brings noticeably more bytes per second, it doubles; when it does not, the
// smaller depth is kept and tried anew from time to time. A store that says that there is too much of it (429, 503)
// gets half of it at once, and from then on it opens step by step. Time comes in as an argument.
#pragma once

#include <chrono>

#include "foreload/types.h"

namespace foreload {

struct DepthOptions {
  unsigned first = 16;
  Duration period = std::chrono::milliseconds(40);  // of one measurement, at least
  double worthwhile = 1.08;                         // a doubled depth must bring this much
};

class DepthControl {
 public:
  explicit DepthControl(unsigned most, const DepthOptions& options = {});

  unsigned depth() const { return depth_; }
  double bytes_per_second() const { return rate_; }  // in the last period; 0: not measured yet
  bool was_throttled(Time now) const;                // lately
  Time calm_again() const;                           // when that will be over. REQUIRES: was_throttled()

  // One has ended. `limited`: as many as allowed were under way meanwhile, and there was work for more. Returns
  // whether a period ended with it.
  bool on_done(Time now, Bytes bytes, bool limited);
  // The same of a read; `in_flight` counts the others that were there meanwhile.
  bool on_read_done(Time now, Bytes bytes, unsigned in_flight) { return on_done(now, bytes, in_flight + 1 >= depth_); }
  void on_throttled(Time now);

 private:
  void begin_period(Time now);
  void end_period(Time now);
  void open(bool trial_went_well, Time now);

  DepthOptions options_;
  unsigned most_;
  unsigned depth_;
  unsigned tried_from_ = 0;  // the depth before the running trial; 0: no trial
  double rate_before_ = 0;   // at tried_from_
  double rate_ = 0;
  unsigned calm_periods_;    // since the last trial failed
  bool is_careful_ = false;  // it was throttled once
  Time throttled_at_{-1};
  Time period_start_{-1};
  Bytes period_bytes_ = 0;
  unsigned period_done_ = 0;
  unsigned period_limited_ = 0;  // of them, while the depth was used up
};

}  // namespace foreload
