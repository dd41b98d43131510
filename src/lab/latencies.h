// Latencies: how long many things took, in a fixed number of counters: every duration is known to a sixteenth of
// itself.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "foreload/types.h"

namespace foreload {

class Latencies {
 public:
  void add(Duration took) {
    const auto ns = static_cast<std::uint64_t>(std::max<Duration::rep>(took.count(), 0));
    ++counts_[bucket(ns)];
    ++count_;
    longest_ = std::max(longest_, Duration(static_cast<Duration::rep>(ns)));
  }

  std::uint64_t count() const { return count_; }
  Duration longest() const { return longest_; }

  // `share` of them took at most so long. Zero when there is none.
  Duration quantile(double share) const {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      seen += counts_[i];
      if (seen > wanted || (seen == count_ && count_ > 0)) return std::min(middle(i), longest_);
    }
    return {};
  }

 private:
  static constexpr unsigned kFine = 4;  // bits behind the leading one
  static constexpr std::size_t kSteps = std::size_t{1} << kFine;
  static constexpr std::size_t kBuckets = (64 - kFine + 1) * kSteps;

  static std::size_t bucket(std::uint64_t ns) {
    if (ns < kSteps) return ns;
    const unsigned shift = static_cast<unsigned>(std::bit_width(ns)) - kFine - 1;
    return (shift + 1) * kSteps + ((ns >> shift) & (kSteps - 1));
  }
  static Duration middle(std::size_t index) {
    if (index < kSteps) return Duration(static_cast<Duration::rep>(index));
    const auto shift = static_cast<unsigned>(index / kSteps - 1);
    const std::uint64_t low = (kSteps + index % kSteps) << shift;
    return Duration(static_cast<Duration::rep>(low + ((std::uint64_t{1} << shift) >> 1)));
  }

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  Duration longest_{};
};

}  // namespace foreload
