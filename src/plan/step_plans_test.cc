#include "plan/step_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

namespace foreload {
namespace {

constexpr std::uint64_t kSamples = 1000;

BalancedAssignment assignment() {
  const Roster roster = *Roster::create({{.learners = 2, .memory = kSamples}, {.learners = 3, .memory = kSamples}});
  const auto length = [](SampleId) { return Bytes{1}; };
  return {Schedule({.samples = kSamples, .seed = 3}),
          SliceAssignment({.samples = kSamples, .global_batch = 64, .world = 5, .last_batch = LastBatch::kRagged}),
          roster, HostPlacement::plan(kSamples, 3, roster, length), length};
}

// What the learners of one host share, in this process; `damage` is done to whatever is found.
struct Shelf {
  std::map<std::uint64_t, std::vector<std::uint32_t>> steps;
  std::function<void(std::span<std::uint32_t>)> damage = [](std::span<std::uint32_t>) {};
  std::uint64_t found = 0;
  bool may_repeat = false;
};

class Share final : public StepShare {
 public:
  explicit Share(Shelf& shelf) : shelf_(shelf) {}
  bool find(std::uint64_t number, std::span<std::uint32_t> offsets) override {
    const auto step = shelf_.steps.find(number);
    if (step == shelf_.steps.end()) return false;
    EXPECT_EQ(step->second.size(), offsets.size());
    std::ranges::copy(step->second, offsets.begin());
    shelf_.damage(offsets);
    ++shelf_.found;
    return true;
  }
  void put(std::uint64_t number, std::span<const std::uint32_t> offsets) override {
    const bool fresh = shelf_.steps.try_emplace(number, offsets.begin(), offsets.end()).second;
    EXPECT_TRUE(fresh || shelf_.may_repeat) << "planned twice";
  }

 private:
  Shelf& shelf_;
};

TEST(StepPlansTest, LearnersThatShareTakeWhatTheyWouldHavePlanned) {
  Shelf shelves[2];
  const std::uint64_t steps = assignment().slice().batches_per_epoch();
  for (std::uint32_t rank = 0; rank < 5; ++rank) {
    const StepPlans expected(assignment(), rank);
    StepPlans shared(assignment(), rank);
    shared.share(std::make_unique<Share>(shelves[rank < 2 ? 0 : 1]));
    EXPECT_LE(shared.max_count(), shared.max_host_count());
    for (Epoch epoch = 0; epoch < 2; ++epoch) {
      for (std::uint64_t step = 0; step < steps; ++step) {
        EXPECT_EQ(*shared.positions(epoch, step), *expected.positions(epoch, step)) << rank << " " << step;
      }
    }
  }
  EXPECT_EQ(shelves[0].found, 2 * steps) << "the second learner planned nothing";
  EXPECT_EQ(shelves[1].found, 4 * steps);
}

TEST(StepPlansTest, WhatCanNotBeAPlanIsNotTaken) {
  Shelf shelf;
  StepPlans first(assignment(), 2);
  first.share(std::make_unique<Share>(shelf));
  (void)first.positions(0, 0);
  const std::vector<std::function<void(std::span<std::uint32_t>)>> damages{
      [](auto offsets) { offsets.back() = 64; }, [](auto offsets) { std::ranges::fill(offsets, 1); },
      [](auto offsets) { std::ranges::reverse(offsets); }, [](auto offsets) { std::ranges::fill(offsets, ~0u); }};
  const StepPlans expected(assignment(), 4);
  for (const auto& damage : damages) {
    shelf.damage = damage;
    shelf.may_repeat = true;  // a plan of its own, which it shares
    StepPlans plans(assignment(), 4);
    plans.share(std::make_unique<Share>(shelf));
    EXPECT_EQ(*plans.positions(0, 0), *expected.positions(0, 0));
  }
}

TEST(StepPlansTest, ItsMemoryGrowsWithTheSamplesAndTheBatch) {
  const StepPlans plans(assignment(), 0);
  EXPECT_EQ(plans.assignment().bytes(), 6 * kSamples);
  EXPECT_GT(plans.bytes(), 6 * kSamples + 256 * plans.max_count() * sizeof(Position));
  EXPECT_LT(plans.bytes(), 6 * kSamples + 256 * (plans.max_count() + 3) * sizeof(Position) + 64 * 65);
}

}  // namespace
}  // namespace foreload
