// DrawWindow: the next draws of a learner, for schedules that can not be asked where a sample stands: a bounded
// number of them, walked once and kept with links from each draw of a sample to its next one. No I/O, one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "plan/stream.h"

namespace foreload {

class DrawWindow {
 public:
  // `stream` must outlive it. REQUIRES: length > 0.
  DrawWindow(const Stream& stream, std::uint64_t length) : stream_(stream), length_(length) {}
  static Bytes bytes_for(std::uint64_t length);

  // Begins anew with the draws from `from` on.
  void restart(Moment from);
  // Forgets what lies before `from` and looks further ahead. Appends the samples that came into sight.
  void advance(Moment from, std::vector<SampleId>& sighted);
  // The first draw of the sample in the window.
  std::optional<Moment> next(SampleId id) const;
  bool has_ended() const { return ended_; }  // no draws follow those in the window

 private:
  struct Draw {
    SampleId id = 0;
    Moment moment = 0;
    std::uint64_t next = 0;  // number of the sample's next draw in the window; 0: none
  };
  struct Sighting {
    std::uint64_t first = 0;  // numbers of draws
    std::uint64_t last = 0;
  };

  Draw& draw(std::uint64_t number) { return draws_[number - first_]; }
  void forget_before(Moment from);
  bool look(SampleId& id);  // at one draw more; whether the sample came into sight

  const Stream& stream_;
  std::uint64_t length_;
  std::deque<Draw> draws_;   // consecutive numbers from first_ on
  std::uint64_t first_ = 1;  // draws are numbered from 1
  std::unordered_map<SampleId, Sighting> sightings_;
  BatchPlan batch_{};  // where the window ends
  std::uint64_t index_ = 0;
  bool ended_ = true;  // there are no more draws
};

}  // namespace foreload
