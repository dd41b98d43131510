// PlanBoard: where the learners of a host leave planned global batches for each other, so that a step is planned once
// per host. A member may die anywhere: what is not complete, or does not have its hash, is planned again by whoever
// needs it. Any thread.
#pragma once

#include <memory>
#include <span>

#include "foreload/result.h"
#include "host/member.h"
#include "plan/step_plans.h"

namespace foreload {

class PlanBoard final : public StepShare {
 public:
  // `key`: equal plans have equal keys. `samples`: of the host's learners in one step, at most.
  static Result<std::unique_ptr<PlanBoard>> open(std::shared_ptr<Member> member, std::uint64_t key,
                                                 std::uint64_t samples);

  bool find(std::uint64_t number, std::span<std::uint32_t> offsets) override;
  void put(std::uint64_t number, std::span<const std::uint32_t> offsets) override;

 private:
  struct Slot;
  PlanBoard(std::shared_ptr<Member> member, std::shared_ptr<SharedObject> memory, std::uint64_t samples);
  static Bytes slot_bytes(std::uint64_t samples);
  Slot& slot(std::uint64_t number) const;
  std::span<std::atomic<std::uint32_t>> data(Slot& slot, std::size_t count) const;
  bool read(Slot& slot, std::uint64_t number, std::span<std::uint32_t> offsets) const;
  // Somebody who lives plans it now.
  bool is_planned(const Slot& slot, std::uint64_t number) const;

  std::shared_ptr<Member> member_;
  std::shared_ptr<SharedObject> memory_;
  std::uint64_t samples_;
  std::uint64_t slots_;
};

}  // namespace foreload
