// DrawWindow: the next draws of a learner, for schedules that can not be asked where a sample stands: a bounded
// number of them, walked once and kept with links from each draw of a sample to its next one. 16 bytes per draw and 8
// per sample. No I/O, one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/stream.h"

namespace foreload {

class DrawWindow {
 public:
  // `stream` must outlive it. REQUIRES: 0 < length < 2^32, fewer samples than that.
  DrawWindow(const Stream& stream, std::uint64_t length);
  static Bytes bytes_for(std::uint64_t samples, std::uint64_t length);

  // Begins anew with the draws from `from` on.
  void restart(Moment from);
  // Forgets what lies before `from` and looks further ahead. Appends the samples that came into sight, each once: those
  // with a draw in the window now of which none from `from` on was in it before.
  void advance(Moment from, std::vector<SampleId>& sighted);
  // The first draw of the sample in the window.
  std::optional<Moment> next(SampleId id) const;
  bool has_ended() const { return ended_; }  // no draws follow those in the window

 private:
  using Place = std::uint32_t;  // in draws_, plus one; 0: none
  struct Draw {
    Moment moment = 0;
    std::uint32_t id = 0;
    Place next = 0;  // of the same sample
  };
  struct Sighting {
    Place first = 0;
    Place last = 0;
  };

  void forget_before(Moment from);
  bool look(SampleId& id);  // at one draw more; whether the sample came into sight

  const Stream& stream_;
  std::vector<Draw> draws_;  // a ring: count_ of them from begin_ on
  std::size_t begin_ = 0;
  std::size_t count_ = 0;
  std::vector<Sighting> sightings_;  // by id
  BatchPlan batch_{};                // where the window ends
  std::uint64_t index_ = 0;
  bool ended_ = true;
};

}  // namespace foreload
