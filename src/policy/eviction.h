// Eviction: who is kept in the memory tier. State machines without I/O, threads or clock: they are told the uses of one
// learner in the order of its stream, and asked for room when a used sample is not there. Whoever drives them, the tier
// stack or a benchmark, only carries out what they say through Room. So decisions depend on the stream and on sizes; a
// victim that is in use at the moment changes what is read again, never what is delivered. One thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "foreload/loader.h"
#include "plan/placement.h"
#include "plan/stream.h"
#include "policy/next_use.h"
#include "policy/ranked_set.h"

namespace foreload {

// The homes that a policy gives and takes.
class Room {
 public:
  virtual ~Room() = default;
  virtual bool take(SampleId id) = 0;   // a home for the newcomer; false: there is no room for it now
  virtual bool evict(SampleId id) = 0;  // false: it is in use
};

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;
  // The stream goes on from here: the first call, and after every jump.
  virtual void restart(Moment) {}
  // The stream's next sample. Saying it again before the next one changes nothing.
  virtual void use(SampleId, Moment) {}
  // The sample that was used last is not there: gives it a home, if it is to have one. False: it only passes through.
  virtual bool admit(SampleId id, Room& room) = 0;
  // The same for a sample that is needed outside of the stream's order.
  virtual bool admit_substitute(SampleId, Room&) { return false; }
  virtual bool evicts() const { return true; }
  // Is its home known from the beginning?
  virtual bool plans(SampleId) const { return false; }
  virtual bool plans_any() const { return false; }
  // It was given a home, but its bytes did not come.
  virtual void lost(SampleId) {}
};

// What `placement` names, from its first use on. `static` and `frequency`.
class KeptHomes : public EvictionPolicy {
 public:
  explicit KeptHomes(const Placement& placement) : placement_(placement) {}  // must outlive it
  bool admit(SampleId id, Room& room) override { return placement_.is_home(id) && room.take(id); }
  bool admit_substitute(SampleId id, Room& room) override { return admit(id, room); }
  bool evicts() const override { return false; }
  bool plans(SampleId id) const override { return placement_.is_home(id); }
  bool plans_any() const override { return placement_.homes() > 0; }

 private:
  const Placement& placement_;
};

// The sample with the largest rank goes. A newcomer whose rank is not smaller than everybody's passes through.
class RankedEviction : public EvictionPolicy {
 public:
  explicit RankedEviction(std::uint64_t samples) : residents_(samples) {}
  void use(SampleId id, Moment now) override;
  bool admit(SampleId id, Room& room) override;
  void lost(SampleId id) override { residents_.remove(id); }

 protected:
  virtual std::uint64_t rank(SampleId id, Moment now) = 0;  // once per use
  RankedSet residents_;

 private:
  // Samples of many sizes leave holes in which a newcomer does not fit.
  static constexpr unsigned kMostVictims = 16;
  // With belady the next victims are those that were just used and are not needed for long: some are still in use.
  static constexpr unsigned kMostSpared = 64;
  std::uint64_t used_rank_ = 0;  // of the sample that was used last
};

// The rank is the time since the last use: every newcomer is admitted.
class LruEviction : public RankedEviction {
 public:
  using RankedEviction::RankedEviction;

 private:
  std::uint64_t rank(SampleId, Moment) override { return ~++uses_; }
  std::uint64_t uses_ = 0;
};

// The rank is the next use: Belady's MIN with bypass, which for samples of one size no other choice exceeds in hits.
class BeladyEviction : public RankedEviction {
 public:
  explicit BeladyEviction(const Stream& stream);  // must outlive it
  void restart(Moment now) override;

 private:
  std::uint64_t rank(SampleId id, Moment now) override;
  NextUse next_use_;
};

constexpr bool evicts(Eviction kind) {
  return kind == Eviction::kBelady || kind == Eviction::kLru;
}

// `placement` counts for the kinds that do not evict. Both must outlive it.
std::unique_ptr<EvictionPolicy> make_eviction(Eviction kind, const Placement& placement, const Stream& stream);
// What it takes at most.
Bytes eviction_bytes(Eviction kind, const Stream& stream);

}  // namespace foreload
