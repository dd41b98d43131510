#include "policy/draw_window.h"

namespace foreload {
namespace {

constexpr Bytes kNode = 64;  // of the map: key, value, link, allocation, share of the buckets

}  // namespace

Bytes DrawWindow::bytes_for(std::uint64_t length) {
  return length * (sizeof(Draw) + kNode);
}

void DrawWindow::restart(Moment from) {
  const SliceAssignment& assignment = stream_.assignment();
  const Epoch epoch = from / assignment.positions_per_epoch();
  const std::uint64_t step = from % assignment.positions_per_epoch() / assignment.shape().global_batch;
  draws_.clear();
  sightings_.clear();
  first_ = 1;
  const std::uint64_t number = stream_.number_of(epoch, step);
  ended_ = !stream_.has(number);
  if (!ended_) batch_ = stream_.batch(number);
  index_ = 0;
  std::vector<SampleId> sighted;
  advance(from, sighted);
}

void DrawWindow::forget_before(Moment from) {
  while (!draws_.empty() && draws_.front().moment < from) {
    const Draw& gone = draws_.front();
    if (gone.next == 0) {
      sightings_.erase(gone.id);
    } else {
      sightings_[gone.id].first = gone.next;
    }
    draws_.pop_front();
    ++first_;
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
  const std::uint64_t number = first_ + draws_.size();
  draws_.push_back({.id = id, .moment = stream_.moment(batch_, index_)});
  ++index_;
  const auto [sighting, fresh] = sightings_.try_emplace(id, Sighting{number, number});
  if (fresh) return true;
  draw(sighting->second.last).next = number;
  sighting->second.last = number;
  return false;
}

void DrawWindow::advance(Moment from, std::vector<SampleId>& sighted) {
  forget_before(from);
  SampleId id = 0;
  while (!ended_ && draws_.size() < length_) {
    if (look(id)) sighted.push_back(id);
    forget_before(from);
  }
}

std::optional<Moment> DrawWindow::next(SampleId id) const {
  const auto found = sightings_.find(id);
  if (found == sightings_.end()) return std::nullopt;
  return draws_[found->second.first - first_].moment;
}

}  // namespace foreload
