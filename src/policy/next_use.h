// NextUse: when a learner uses a sample again. A pure function of the stream. If every epoch is a permutation, it is
// looked up epoch by epoch through the inverse of the order, in no memory at all; otherwise in a bounded window of the
// next draws. One thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "plan/stream.h"
#include "policy/draw_window.h"

namespace foreload {

class NextUse {
 public:
  static constexpr Moment kNever = std::numeric_limits<Moment>::max();
  // From here on: beyond the window. The more rarely a sample is drawn, the larger.
  static constexpr Moment kNotSoon = Moment{1} << 63;

  static constexpr std::uint64_t kLongestWindow = 1 << 18;

  // `stream` must outlive it. `longest_window`: for schedules that are no permutations.
  explicit NextUse(const Stream& stream, std::uint64_t longest_window = kLongestWindow);
  static Bytes bytes_for(const Stream& stream);

  void restart(Moment now);
  // The sample at `now` is used. What came into sight by it, so that its next use is another than before, is in
  // sighted().
  void advance(Moment now);
  const std::vector<SampleId>& sighted() const { return sighted_; }
  // The first use from restart()'s moment on, or after advance()'s.
  Moment of(SampleId id) const;

 private:
  Moment in_permutations(SampleId id) const;
  Moment beyond_window(SampleId id) const;

  const Stream& stream_;
  std::optional<DrawWindow> window_;
  Moment from_ = 0;
  std::vector<SampleId> sighted_;
};

}  // namespace foreload
