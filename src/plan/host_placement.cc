// Samples are dealt in the placement's keyed order, so every host's homes are spread evenly over every epoch. For
// memory and then for disk:
//   by share   to the host that has fewest homes for its share. A host that is full leaves; what does not fit in the
//              chosen host waits, and a host that has refused a few leaves, too.
//   by room    what is left over, to the host with most room, whatever its share; if the sizes' sum says that all may
//              fit, largest first.
// Hosts with little room so end early and the others go on in proportion: the levels of water in connected vessels.
// O(samples · log hosts).
#include "plan/host_placement.h"

#include <algorithm>
#include <span>
#include <utility>

#include "plan/front_heap.h"
#include "plan/placement.h"

namespace foreload {
namespace {

constexpr unsigned kMostRefusals = 8;

struct Candidate {
  SampleId id = 0;
  Bytes footprint = 0;
};

struct Vessel {
  HostIndex host = 0;
  std::uint64_t share = 0;
  std::uint64_t homes = 0;  // of both tiers: the disk evens out what memory could not
  Bytes capacity = 0;
  Bytes left = 0;
  unsigned refusals = 0;
};

// Who would be least ahead of its share with one home more.
bool is_behind(const Vessel& a, const Vessel& b) {
  __extension__ using Wide = unsigned __int128;
  const Wide left = static_cast<Wide>(a.homes + 1) * b.share;
  const Wide right = static_cast<Wide>(b.homes + 1) * a.share;
  return left != right ? left < right : a.host < b.host;
}

bool has_more_room(const Vessel& a, const Vessel& b) {
  return a.left != b.left ? a.left > b.left : a.host < b.host;
}

// Does Σ footprint fit in `room`? Without the sum that could overflow.
bool sum_fits(std::span<const Candidate> candidates, Bytes room) {
  for (const Candidate& candidate : candidates) {
    if (candidate.footprint > room) return false;
    room -= candidate.footprint;
  }
  return true;
}

Bytes room_of(std::span<const Vessel> vessels) {
  Bytes room = 0;
  for (const Vessel& vessel : vessels) room += vessel.left;
  return room;
}

// In the order of their right to a home.
std::vector<Candidate> candidates_of(std::uint64_t samples, std::uint64_t seed,
                                     const std::function<Bytes(SampleId)>& footprint) {
  std::vector<Candidate> candidates;
  candidates.reserve(samples);
  for (const SampleId id : placement_order(samples, seed)) {
    if (const Bytes bytes = footprint(id); bytes > 0) candidates.push_back({id, bytes});
  }
  return candidates;
}

}  // namespace

class HostPlacement::Dealing {
 public:
  Dealing(std::uint64_t samples, const Roster& roster) : roster_(roster), vessels_(roster.hosts().size()) {
    placement_.homes_.resize(samples);
    placement_.tallies_.resize(2 * vessels_.size());
    for (HostIndex host = 0; host < vessels_.size(); ++host) {
      vessels_[host] = {.host = host, .share = roster.share(host)};
    }
  }

  // Leaves in `waiting` who got no home.
  void fill(HomeTier tier, std::vector<Candidate>& waiting) {
    tier_ = tier;
    for (Vessel& vessel : vessels_) {
      const RosterHost& host = roster_.hosts()[vessel.host];
      vessel.capacity = vessel.left = tier == HomeTier::kMemory ? host.memory : host.disk;
      vessel.refusals = 0;
    }
    by_share(waiting);
    by_room(waiting);
  }
  HostPlacement finish() { return std::move(placement_); }

 private:
  void by_share(std::vector<Candidate>& waiting) {
    const auto takes_part = [](const Vessel& v) { return v.share > 0 && v.capacity > 0; };
    const auto end = std::partition(vessels_.begin(), vessels_.end(), takes_part);
    const std::span<Vessel> heap(vessels_.begin(), end);
    deal(waiting, heap, is_behind,
         [](const Vessel& v) { return v.left < full_below(v.capacity) || v.refusals == kMostRefusals; });
  }

  void by_room(std::vector<Candidate>& waiting) {
    const bool all = sum_fits(waiting, room_of(vessels_));
    if (all) std::ranges::stable_sort(waiting, std::greater<>(), &Candidate::footprint);
    deal(waiting, std::span<Vessel>(vessels_), has_more_room,
         [all](const Vessel& v) { return v.left < (all ? 1 : full_below(v.capacity)); });
  }

  // Offers each candidate to the front of `heap`, which leaves when `is_done`.
  template <typename Before, typename Done>
  void deal(std::vector<Candidate>& waiting, std::span<Vessel> heap, Before before, Done is_done) {
    heapify(heap, before);
    auto kept = waiting.begin();
    auto next = waiting.begin();
    for (; next != waiting.end() && !heap.empty(); ++next) {
      Vessel& front = heap.front();
      if (!admits(front, *next)) *kept++ = *next;
      if (is_done(front)) {
        heap = without_front(heap, before);
      } else {
        sift_down(heap, 0, before);
      }
    }
    waiting.erase(kept, next);
  }

  bool admits(Vessel& vessel, const Candidate& candidate) {
    if (candidate.footprint > vessel.left) {
      vessel.refusals += candidate.footprint <= vessel.capacity ? 1 : 0;
      return false;
    }
    vessel.left -= candidate.footprint;
    vessel.homes += 1;
    placement_.homes_[candidate.id] = Home(vessel.host, tier_);
    Tally& tally = placement_.tallies_[place(vessel.host, tier_)];
    tally.homes += 1;
    tally.bytes += candidate.footprint;
    return true;
  }

  const Roster& roster_;
  HomeTier tier_ = HomeTier::kMemory;
  std::vector<Vessel> vessels_;  // in any order
  HostPlacement placement_;
};

HostPlacement HostPlacement::plan(std::uint64_t samples, std::uint64_t seed, const Roster& roster,
                                  const std::function<Bytes(SampleId)>& footprint) {
  std::vector<Candidate> waiting = candidates_of(samples, seed, footprint);
  Dealing dealing(samples, roster);
  dealing.fill(HomeTier::kMemory, waiting);
  dealing.fill(HomeTier::kDisk, waiting);
  return dealing.finish();
}

}  // namespace foreload
