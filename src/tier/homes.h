// Homes: carries out in the arena what an eviction policy decides, and notes it in the event record. One thread.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "base/event_record.h"
#include "foreload/source.h"
#include "policy/eviction.h"
#include "tier/arena.h"

namespace foreload {

class Homes : private Room {
 public:
  // `source` and `arena` must outlive it.
  Homes(const Source& source, Arena& arena, std::unique_ptr<EvictionPolicy> policy)
      : source_(source), arena_(arena), policy_(std::move(policy)) {}
  void record_to(EventRecord* record) { record_ = record; }  // null: nowhere

  void restart(Moment now) {
    policy_->restart(now);
    used_.reset();
  }
  void at(Time now) { now_ = now; }  // the time of what follows, for the record
  // The stream is at this sample; it is said again when the sample has to be asked for again.
  void use(SampleId id, Moment now);
  // Room at home, begun as a flight; nothing when it is to have none. REQUIRES: absent.
  // `in_stream`: it is the sample that was used last; otherwise it is needed out of order.
  std::optional<std::span<std::byte>> begin(SampleId id, bool in_stream);
  // Homes that are known before they are used: the others are given and taken on the way.
  bool plans(SampleId id) const { return policy_->plans(id); }
  bool plans_any() const { return policy_->plans_any(); }
  bool evicts() const { return policy_->evicts(); }
  // A flight, to a home or not, was abandoned.
  void lost(SampleId id) { policy_->lost(id); }

 private:
  bool take(SampleId id) override;
  bool evict(SampleId id) override;
  void record(EventKind kind, SampleId id, SampleId newcomer = 0);

  const Source& source_;
  Arena& arena_;
  std::unique_ptr<EvictionPolicy> policy_;
  EventRecord* record_ = nullptr;
  Time now_{};
  std::optional<Moment> used_;
  bool bypassed_ = false;  // the policy was asked for a home at used_, and gave none
  SampleId newcomer_ = 0;  // for whom the policy is asked
  std::span<std::byte> into_;
};

}  // namespace foreload
