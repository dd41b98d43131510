#include "policy/draw_window.h"

#include <limits>

#include "base/check.h"

namespace foreload {

DrawWindow::DrawWindow(const Stream& stream, std::uint64_t length)
    : stream_(stream), draws_(length), sightings_(stream.schedule().options().samples) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  FORELOAD_CHECK(length > 0 && length < kMost && sightings_.size() < kMost, "places and ids have 32 bits");
}

Bytes DrawWindow::bytes_for(std::uint64_t samples, std::uint64_t length) {
  return length * sizeof(Draw) + samples * sizeof(Sighting);
}

void DrawWindow::restart(Moment from) {
  const SliceAssignment& assignment = stream_.assignment();
  const Epoch epoch = from / assignment.positions_per_epoch();
  const std::uint64_t step = from % assignment.positions_per_epoch() / assignment.shape().global_batch;
  forget_before(std::numeric_limits<Moment>::max());
  const std::uint64_t number = stream_.number_of(epoch, step);
  ended_ = !stream_.has(number);
  batch_ = stream_.batch(number);
  index_ = 0;
  std::vector<SampleId> sighted;
  advance(from, sighted);
}

void DrawWindow::forget_before(Moment from) {
  while (count_ > 0 && draws_[begin_].moment < from) {
    const Draw& gone = draws_[begin_];
    Sighting& sighting = sightings_[gone.id];
    sighting.first = gone.next;
    if (gone.next == 0) sighting.last = 0;
    begin_ = (begin_ + 1) % draws_.size();
    --count_;
  }
}

bool DrawWindow::look(SampleId& id) {
  while (index_ == batch_.count) {
    ended_ = !stream_.has(batch_.number + 1);
    if (ended_) return false;
    batch_ = stream_.batch(batch_.number + 1);
    index_ = 0;
  }
  id = stream_.sample(batch_, index_);
  const std::size_t at = (begin_ + count_) % draws_.size();
  const auto place = static_cast<Place>(at + 1);
  draws_[at] = {.moment = stream_.moment(batch_, index_), .id = static_cast<std::uint32_t>(id)};
  ++count_;
  ++index_;
  Sighting& sighting = sightings_[id];
  const bool fresh = sighting.first == 0;
  (fresh ? sighting.first : draws_[sighting.last - 1].next) = place;
  sighting.last = place;
  return fresh;
}

void DrawWindow::advance(Moment from, std::vector<SampleId>& sighted) {
  forget_before(from);
  SampleId id = 0;
  while (!ended_ && count_ < draws_.size()) {
    if (look(id) && *next(id) >= from) sighted.push_back(id);  // what lies before is passed at once
    forget_before(from);
  }
}

std::optional<Moment> DrawWindow::next(SampleId id) const {
  const Place first = sightings_[id].first;
  if (first == 0) return std::nullopt;
  return draws_[first - 1].moment;
}

}  // namespace foreload
