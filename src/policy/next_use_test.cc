#include "policy/next_use.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "plan/test_statistics.h"
#include "policy/counted_room.h"

namespace foreload {
namespace {

using Uses = std::vector<std::pair<Moment, SampleId>>;

Stream random_stream(std::mt19937_64& random, Epoch epochs) {
  const std::uint64_t samples = 1 + random() % 80;
  const auto world = static_cast<std::uint32_t>(1 + random() % 5);
  const LastBatch rules[] = {LastBatch::kRagged, LastBatch::kPad, LastBatch::kDrop};
  const std::uint64_t unit = 1 + random() % 2;
  JobShape shape{.samples = samples,
                 .global_batch = (1 + random() % samples) * unit,
                 .world = world,
                 .last_batch = rules[random() % 3],
                 .unit = unit};
  if (shape.global_batch > samples) shape.last_batch = LastBatch::kPad;
  return Stream(Schedule({.samples = samples, .seed = random(), .shuffle = random() % 8 != 0}), SliceAssignment(shape),
                {.rank = static_cast<std::uint32_t>(random() % world), .epochs = epochs});
}

Uses uses_of(const Stream& stream, Epoch epochs) {
  Uses uses;
  for_each_use(stream, epochs, [&](SampleId id, Moment now) { uses.emplace_back(now, id); });
  return uses;
}

Moment first_use(const Uses& uses, std::size_t from, SampleId id) {
  for (std::size_t i = from; i < uses.size(); ++i) {
    if (uses[i].second == id) return uses[i].first;
  }
  return NextUse::kNever;
}

TEST(NextUseTest, IsTheStreamsNextDrawOfTheSample) {
  std::mt19937_64 random(fresh_seed());
  for (int turn = 0; turn < (soak() ? 1000 : 100); ++turn) {
    const Epoch epochs = 1 + random() % 5;
    const Stream stream = random_stream(random, epochs);
    const Uses uses = uses_of(stream, epochs);
    NextUse next_use(stream);
    next_use.restart(0);
    for (SampleId id = 0; id < stream.schedule().size(); ++id) ASSERT_EQ(next_use.of(id), first_use(uses, 0, id));
    for (std::size_t i = 0; i < uses.size(); i += 1 + random() % 7) {
      next_use.advance(uses[i].first);
      const SampleId id = random() % stream.schedule().size();
      ASSERT_EQ(next_use.of(id), first_use(uses, i + 1, id));
      ASSERT_EQ(next_use.of(uses[i].second), first_use(uses, i + 1, uses[i].second));
    }
  }
}

TEST(NextUseTest, ARunWithoutEndIsLookedThroughForABoundedNumberOfEpochs) {
  const JobShape shape{.samples = 40, .global_batch = 4, .world = 2};
  const Schedule in_order({.samples = 40, .shuffle = false});  // half of the samples are never this rank's
  const Stream stream(in_order, SliceAssignment(shape), {.rank = 0});
  NextUse next_use(stream);
  next_use.advance(0);
  EXPECT_EQ(next_use.of(0), 40u);
  EXPECT_EQ(next_use.of(2), NextUse::kNever);
}

TEST(NextUseTest, BeyondTheWindowTheRarerComesLaterAndAtTheEndNever) {
  std::vector<double> weights(100);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<double>(i + 1);
  const auto table = std::make_shared<const WeightTable>(*WeightTable::create(weights));
  const JobShape shape{.samples = 100, .global_batch = 10};
  const Stream stream(Schedule({.samples = 100, .weights = table}), SliceAssignment(shape), {.epochs = 3});
  NextUse next_use(stream, 10);
  next_use.restart(0);
  std::vector<SampleId> not_soon;
  for (SampleId id = 0; id < 100; ++id) {
    if (next_use.of(id) >= NextUse::kNotSoon) not_soon.push_back(id);
  }
  EXPECT_GE(not_soon.size(), 90u);
  EXPECT_TRUE(
      std::ranges::is_sorted(not_soon, [&](SampleId a, SampleId b) { return next_use.of(a) > next_use.of(b); }));
  next_use.advance(stream.moment(stream.batch(29), 0));
  std::uint64_t never = 0;
  for (SampleId id = 0; id < 100; ++id) never += next_use.of(id) == NextUse::kNever ? 1 : 0;
  EXPECT_GE(never, 91u);
}

TEST(NextUseTest, ShortRunsOfDrawsAndEchoesAreKnownToTheirEnd) {
  std::mt19937_64 random(fresh_seed());
  for (int turn = 0; turn < 100; ++turn) {
    const std::uint64_t samples = 1 + random() % 20;
    const Epoch epochs = 1 + random() % 20;
    std::vector<double> weights(samples, 1.0);
    weights[0] = 0.05;
    const auto table = std::make_shared<const WeightTable>(*WeightTable::create(weights));
    const Schedule schedule({.samples = samples, .seed = random(), .weights = table, .echo = 2, .echo_window = 5});
    const Stream stream(schedule, SliceAssignment({.samples = schedule.size(), .global_batch = 3}), {.epochs = epochs});
    const Uses uses = uses_of(stream, epochs);
    NextUse next_use(stream);
    next_use.restart(0);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      next_use.advance(uses[i].first);
      const SampleId id = random() % samples;
      ASSERT_EQ(next_use.of(id), first_use(uses, i + 1, id)) << "draw " << i;
    }
  }
}

TEST(DrawWindowTest, KnowsInsideOfTheWindowWhatFullKnowledgeKnows) {
  std::mt19937_64 random(fresh_seed());
  for (int turn = 0; turn < (soak() ? 1000 : 100); ++turn) {
    const Epoch epochs = 1 + random() % 5;
    const Stream stream = random_stream(random, epochs);
    const Uses uses = uses_of(stream, epochs);
    if (uses.empty()) continue;
    const std::uint64_t length = 1 + random() % 100;
    DrawWindow window(stream, length);
    std::vector<SampleId> sighted;
    std::size_t i = random() % uses.size();
    window.restart(uses[i].first);
    for (std::size_t seen = i + length; i < uses.size(); i += 1 + random() % (random() % 8 == 0 ? 2 * length : 3)) {
      std::set<SampleId> known;  // to come, and in sight already
      for (std::size_t j = i + 1; j < std::min(seen, uses.size()); ++j) known.insert(uses[j].second);
      seen = i + 1 + length;
      sighted.clear();
      window.advance(uses[i].first + 1, sighted);
      const Moment end = i + length < uses.size() ? uses[i + length].first : NextUse::kNever;
      for (SampleId id = 0; id < stream.schedule().size(); ++id) {
        const Moment next = first_use(uses, i + 1, id);
        const auto found = window.next(id);
        ASSERT_EQ(found.has_value(), next != NextUse::kNever && next <= end);
        ASSERT_EQ(std::ranges::count(sighted, id), found && !known.contains(id) ? 1 : 0)
            << "what came into sight is said";
        if (!found) continue;
        ASSERT_EQ(*found, next);
      }
    }
  }
}

}  // namespace
}  // namespace foreload
