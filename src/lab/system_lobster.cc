// Lobster: every host evicts what its learners need last again (Belady with bypass, the product's RankedEviction over
// its NextUse), does not let the last copy in the cluster go, asks other hosts before storage, and moves its threads
// to the learner that lacks most, so that a host loads as one.
#include <algorithm>
#include <deque>

#include "lab/host_rooms.h"
#include "lab/sliced_system.h"
#include "lab/systems.h"
#include "policy/next_use.h"

namespace foreload {
namespace {

// By when any learner of the host needs a sample again.
class HostBelady : public RankedEviction {
 public:
  HostBelady(std::uint64_t samples, const std::deque<Stream>& streams) : RankedEviction(samples) {
    for (const Stream& stream : streams) {
      uses_.emplace_back(stream);
      uses_.back().restart(0);
    }
  }

 private:
  std::uint64_t rank(SampleId id, Moment now) override {
    Moment soonest = NextUse::kNever;
    for (NextUse& use : uses_) {
      use.advance(now);
      soonest = std::min(soonest, use.of(id));
    }
    return soonest;
  }

  std::vector<NextUse> uses_;
};

// A copy that is the last one stays.
class CopiedRoom : public ByteRoom {
 public:
  CopiedRoom(const SystemScene& scene, std::vector<std::uint16_t>& copies)
      : ByteRoom(scene, scene.setup.cache), copies_(&copies) {}
  bool take(SampleId id) override {
    if (!ByteRoom::take(id)) return false;
    ++(*copies_)[id];
    return true;
  }
  bool evict(SampleId id) override {
    if ((*copies_)[id] <= 1) return false;
    --(*copies_)[id];
    return ByteRoom::evict(id);
  }
  void lose_all() {
    for (SampleId id = 0; id < copies_->size(); ++id) (*copies_)[id] -= has(id) ? 1 : 0;
    clear();
  }

 private:
  std::vector<std::uint16_t>* copies_;
};

class Lobster : public SlicedSystem {
 public:
  explicit Lobster(const SystemScene& scene)
      : SlicedSystem(scene), copies_(setup().samples), holders_(setup().samples, FirstHomes::kNobody) {
    for (HostIndex host = 0; host < setup().hosts; ++host) {
      std::deque<Stream>& streams = streams_.emplace_back();
      for (std::uint64_t learner = 0; learner < ranks_per_host(); ++learner) {
        const auto rank = static_cast<std::uint32_t>(host * ranks_per_host() + learner);
        streams.emplace_back(schedule(), slices(), StreamOptions{.rank = rank, .epochs = setup().epochs});
      }
      rooms_.emplace_back(scene, copies_);
      policies_.emplace_back(setup().samples, streams);
    }
  }
  SystemTraits traits() const override { return {.pools_host = setup().jobs == 1, .crosses_epochs = true, .ahead = 4}; }
  void forget(HostIndex host) override {
    rooms_[host].lose_all();
    policies_[host] = HostBelady(setup().samples, streams_[host]);
  }

 private:
  Found find(const Look& look) override {
    const Moment moment = look.epoch * slices().positions_per_epoch() + look.position;
    HostBelady& policy = policies_[look.host];
    CopiedRoom& room = rooms_[look.host];
    policy.use(look.id, moment);
    if (room.has(look.id)) return {KeptAt::kMemory};
    const std::uint16_t holder = holders_[look.id];
    const bool elsewhere = holder != FirstHomes::kNobody && rooms_[holder].has(look.id);
    if (policy.admit(look.id, room)) holders_[look.id] = static_cast<std::uint16_t>(look.host);
    return elsewhere ? Found{KeptAt::kPeer, holder} : Found{KeptAt::kStorage};
  }

  std::deque<std::deque<Stream>> streams_;  // by host: they are pointed to
  std::vector<std::uint16_t> copies_;
  std::vector<std::uint16_t> holders_;  // who took it last
  std::vector<CopiedRoom> rooms_;
  std::vector<HostBelady> policies_;
};

}  // namespace

std::unique_ptr<LoadingSystem> make_lobster(const SystemScene& scene) {
  return std::make_unique<Lobster>(scene);
}

}  // namespace foreload
