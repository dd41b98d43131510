// RequestWindow: how many requests may be under way at a store. It opens by doubling while that brings more bytes per
// second, and is halved when the store says that there is too much of it (429, 503); from then on it opens step by
// step. A plain state machine: time comes in as an argument.
#pragma once

#include <cstdint>

#include "foreload/types.h"

namespace foreload {

struct RequestWindowOptions {
  unsigned first = 16;
  unsigned most = 128;
};

class RequestWindow {
 public:
  explicit RequestWindow(const RequestWindowOptions& options = {});

  unsigned size() const { return size_; }
  bool was_throttled(Time now) const;  // lately
  Time calm_again() const;             // when that will be over. REQUIRES: was_throttled()

  // Something waits for a request, and as many as allowed are under way.
  void on_limited(Time now);
  void on_done(Time now, Bytes bytes);
  void on_throttled(Time now);

 private:
  void end_period(Time now);
  void grow();

  RequestWindowOptions options_;
  unsigned size_;
  unsigned tried_from_ = 0;  // the size before the running trial; 0: no trial
  double rate_before_ = 0;   // at tried_from_
  double rate_ = 0;          // in the last period
  unsigned calm_periods_;    // since a trial failed
  bool is_careful_ = false;  // the store has complained before
  Time throttled_at_{-1};
  Time period_start_{-1};
  Bytes period_bytes_ = 0;
  unsigned period_requests_ = 0;
  bool is_limited_ = false;  // in this period
};

}  // namespace foreload
