// PrepCurve: samples per second of prep by the number of threads, each on a core of its own, from what was measured at
// a few numbers. Between them straight lines; beyond the last one Amdahl's law, whose serial share is what the measured
// part shows, up to four times as many threads; from there on, and beyond a single number, no growth. Pure values.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lab/measured.h"

namespace foreload {

class PrepCurve {
 public:
  explicit PrepCurve(std::span<const PrepAt> measured);

  bool known() const { return !points_.empty(); }
  unsigned most_measured() const;  // threads; 0: nothing was
  unsigned reach() const;          // threads up to which growth is extrapolated

  // Beyond what was measured, low is no growth at all, and high is growth without loss. Nothing for no threads.
  // REQUIRES: known().
  Figure at(double threads) const;
  // The smallest whole number of threads that prepares `rate`; nothing: no number up to `most` does.
  std::optional<unsigned> sufficient(double rate, unsigned most) const;
  // Share of a thread's work that others have to wait for, 0: scales without loss.
  double serial_share() const { return serial_; }

 private:
  Figure beyond(double threads) const;

  std::vector<PrepAt> points_;  // by threads, rising
  double serial_ = 0;
};

}  // namespace foreload
