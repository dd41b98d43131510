// In order: two batch slots at least, scratch, the table; what is left becomes home and transit; more batch slots
// are taken from a quarter of the budget at most, because a cached sample is worth more than a third look-ahead batch.
#include "plan/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace foreload {
namespace {

constexpr unsigned kLookahead = 6;         // slots beside the held ones, when they are cheap
constexpr Bytes kSmallestScratch = 2_MiB;  // per worker
constexpr Bytes kLargestScratch = 96_MiB;  // per worker
constexpr Bytes kSmallestTransit = 64_KiB;
constexpr Bytes kBounceMargin = 8_KiB;  // whole blocks on both sides

// What the caller may hold, and never less than two: one to consume, one to fill.
unsigned fewest_slots(const MemoryNeeds& needs) {
  return std::max(2u, needs.held_batches);
}

unsigned choose_slots(const MemoryNeeds& needs) {
  const Bytes affordable = needs.budget / 4 / std::max<Bytes>(needs.slot_bytes, 1);
  return static_cast<unsigned>(std::clamp<Bytes>(affordable, fewest_slots(needs), needs.held_batches + kLookahead));
}

Error too_small(const MemoryNeeds& needs, Bytes scratch, Bytes transit) {
  const unsigned slots = fewest_slots(needs);
  const Bytes batches = slots * needs.slot_bytes;
  const Bytes least = (batches + scratch + needs.table_bytes + transit + 1_MiB - 1) / 1_MiB;
  return {Code::kNoMemory,
          fmt::format(
              "the memory budget of {} is too small: {} batches need {}, {} {}, tables {}, bytes in "
              "transit {}: at least {} MiB in all. Raise the memory budget, or lower the batch size or the number of "
              "workers",
              format_bytes(needs.budget), slots, format_bytes(batches), counted(needs.threads, "prep thread"),
              format_bytes(scratch), format_bytes(needs.table_bytes), format_bytes(transit), least)};
}

}  // namespace

Result<MemoryPlan> plan_memory(const MemoryNeeds& needs) {
  MemoryPlan plan;
  plan.slots = choose_slots(needs);
  const Bytes least_scratch = needs.threads * (needs.runner_bytes + kSmallestScratch);
  plan.scratch = std::clamp(needs.budget / 8, least_scratch, least_scratch + needs.threads * kLargestScratch);
  Bytes fixed = plan.slots * needs.slot_bytes + plan.scratch + needs.table_bytes;
  if (fixed + kSmallestTransit > needs.budget) {
    plan.slots = fewest_slots(needs);
    plan.scratch = least_scratch;
    fixed = plan.slots * needs.slot_bytes + plan.scratch + needs.table_bytes;
  }
  if (fixed + kSmallestTransit > needs.budget) return too_small(needs, least_scratch, kSmallestTransit);
  Bytes rest = needs.budget - fixed;

  plan.read_depth = needs.read_depth;
  if (needs.direct) {
    plan.bounce = rest / 8;
    const Bytes each = needs.longest_footprint + kBounceMargin;
    plan.read_depth = static_cast<unsigned>(std::clamp<Bytes>(plan.bounce / each, 1, needs.read_depth));
    plan.bounce_each = std::max(plan.bounce / plan.read_depth, 2 * kBounceMargin) - kBounceMargin;
    rest -= plan.bounce;
  }
  // Transit has room for one sample even then: a read that fails leaves a hole where its home was.
  if (needs.cache && needs.all_footprint + needs.longest_footprint <= rest) {
    plan.growth = needs.growth > 0 && needs.all_footprint + needs.growth + needs.longest_footprint <= rest;
    plan.home = needs.all_footprint + (plan.growth ? needs.growth : 0);
    plan.transit = plan.longest_footprint = needs.longest_footprint;
    return plan;
  }
  // Every sample must be able to pass, also when that leaves nothing to be cached.
  const Bytes ahead = std::min(Bytes{2} * needs.read_depth * needs.mean_footprint, rest / 4);
  const Bytes passable = needs.substitutes ? rest / 2 : rest;
  plan.transit = std::min(std::max({ahead, needs.longest_footprint, kSmallestTransit}), passable);
  plan.longest_footprint = std::min(needs.longest_footprint, plan.transit);
  // A byte that is held saves several reads per epoch, one at home only one: holds come first, up to a half.
  plan.hold = std::min(needs.hold, (passable - plan.transit) / 2);
  plan.transit += plan.hold;
  if (needs.substitutes) plan.urgent = plan.longest_footprint;
  rest -= plan.transit + plan.urgent;
  if (needs.disk) plan.onward = std::min(needs.read_depth * needs.mean_footprint, rest / 8);
  plan.home = needs.cache ? rest - plan.onward : 0;
  return plan;
}

}  // namespace foreload
