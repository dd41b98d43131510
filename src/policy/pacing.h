// Pacer: how many reads to keep in flight and how far to look ahead. A plain state machine: it is told what
// happened and when, and answers; it reads no clock and touches no bytes.
//
// Depth follows throughput: while all allowed reads are in flight and doubling the depth brings noticeably more
// bytes per second, it doubles; when it does not, the smaller depth is kept and tried anew from time to time.
#pragma once

#include <array>
#include <cstdint>

#include "foreload/types.h"

namespace foreload {

// Who wants bytes.
enum class FetchClass {
  kSubstitutes,  // batches that are open already and lost a sample
  kStream,       // what comes next
};

struct PacerOptions {
  unsigned max_depth = 128;
  std::uint64_t batch = 1;  // samples per ring slot
};

class Pacer {
 public:
  explicit Pacer(const PacerOptions& options);

  // May another read start?
  bool may_start(unsigned in_flight) const { return in_flight < depth_; }
  unsigned depth() const { return depth_; }
  double bytes_per_second() const { return rate_; }  // in the last window; 0: not measured yet

  // In which order wants are served; within each, in the order of need. What an open batch lacks is needed before
  // anything that is read ahead.
  static constexpr std::array<FetchClass, 2> order() { return {FetchClass::kSubstitutes, FetchClass::kStream}; }

  // How many batches beyond the open ring slots bytes are fetched; they wait in transit.
  std::uint64_t lookahead_batches() const;

  // A read ended; `in_flight` counts those that remain. Returns whether the depth changed.
  bool on_read_done(Time now, Bytes bytes, unsigned in_flight);

 private:
  bool end_window(Time now);

  PacerOptions options_;
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
