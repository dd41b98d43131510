// OriginCost: what reads from one origin take, learned from those that ended. It steers routing and pacing, never what
// is delivered. A plain state machine: times come in as arguments.
#pragma once

#include <cstdint>
#include <optional>

#include "foreload/types.h"

namespace foreload {

// Where bytes are read; the numbers are those of the event record.
enum class Origin : std::uint8_t { kSource = 0, kDisk = 1, kPeer = 2 };  // kPeer: another host's memory
inline constexpr unsigned kOrigins = 3;

class OriginCost {
 public:
  void on_read_done(Duration took);
  // A window of reads ended that brought this many bytes per second.
  void on_rate(double bytes_per_second);

  // How long a read of `bytes` behind `queued` others takes. Nothing: too few reads were seen to say.
  std::optional<Duration> estimate(Bytes bytes, Bytes queued) const;
  // How long the bytes alone take.
  std::optional<Duration> transfer(Bytes bytes) const;

 private:
  std::uint64_t reads_ = 0;
  Duration latency_{};  // of the quickest reads of late
  double bandwidth_ = 0;
};

}  // namespace foreload
