// Hedging: after which silence a second request for the same bytes is sent. It learns how long requests are usually
// silent, and finds those that are slower than 99 of 100 or three times as slow as the middle one; at most one of
// twenty requests is sent twice. A plain state machine.
#pragma once

#include <array>
#include <cstdint>

#include "foreload/types.h"

namespace foreload {

class Hedging {
 public:
  // A request was complete; its longest silence: before the first byte, or between two parts.
  void on_done(Duration silence);
  void on_hedged() { ++hedged_; }

  // The silence after which a request is worth a second one. Duration::max(): never, because too little is known or
  // too many were sent twice.
  Duration delay() const;

 private:
  static constexpr std::size_t kBuckets = 256;  // eight per doubling, from a microsecond on

  static std::size_t bucket_of(Duration silence);
  static Duration upper_end(std::size_t bucket);
  Duration quantile(double share) const;

  std::array<std::uint32_t, kBuckets> counts_{};
  std::uint32_t seen_ = 0;    // in counts_
  std::uint32_t hedged_ = 0;  // of them; both are halved from time to time, so that old news fade
};

}  // namespace foreload
