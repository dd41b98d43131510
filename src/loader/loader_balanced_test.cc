// Learners on several hosts, by a roster: what all of them get together is what one learner would get.
#include <gtest/gtest.h>

#include "loader/ledger.h"
#include "loader/seams.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSamples = 613;
constexpr std::uint64_t kGlobalBatch = 48;

Roster roster_of(const std::vector<std::uint32_t>& learners, Bytes memory = 1_GiB) {
  std::vector<RosterHost> hosts;
  for (const std::uint32_t count : learners) hosts.push_back({.learners = count, .memory = memory});
  return *Roster::create(std::move(hosts));
}

class LoaderBalancedTest : public testing::Test {
 protected:
  LoaderOptions options(std::uint32_t rank, std::uint32_t world) const {
    LoaderOptions options = ledger_.options(1);
    options.global_batch = kGlobalBatch;
    options.rank = rank;
    options.world = world;
    options.last_batch = LastBatch::kRagged;
    return options;
  }
  Loader open(const LoaderOptions& options, const Roster& roster) const {
    auto loader = open_with_seams(options, {.roster = roster});
    EXPECT_TRUE(loader.ok()) << loader.error().message;
    return std::move(*loader);
  }
  // What all ranks see of `epochs`, from the state on; every position once.
  Seen all(const Roster& roster, Epoch epochs, const State* from = nullptr) {
    Seen seen;
    for (std::uint32_t rank = 0; rank < roster.world(); ++rank) {
      Loader loader = open(options(rank, roster.world()), roster);
      EXPECT_TRUE(from == nullptr || loader.seek(*from).ok());
      const Epoch begin = from == nullptr ? 0 : from->epoch;
      for (Epoch epoch = begin; epoch < epochs; ++epoch) EXPECT_TRUE(read_epoch(loader, seen));
    }
    return seen;
  }

  Ledger ledger_{kSamples};
};

TEST_F(LoaderBalancedTest, AllLearnersTogetherGetEveryPositionOnce) {
  const Seen expected = reference(kSamples, options(0, 1), 2);
  for (const auto& learners : {std::vector<std::uint32_t>{2, 2, 2}, {1, 3}, {5}}) {
    EXPECT_EQ(all(roster_of(learners), 2), expected);
    EXPECT_EQ(all(roster_of(learners, 100 * Ledger::kLength), 2), expected) << "with homes for some";
  }
}

TEST_F(LoaderBalancedTest, ALearnerGetsAsManySamplesAsItsSlice) {
  const Roster roster = roster_of({2, 2});
  Loader loader = open(options(1, 4), roster);
  Loader slice = foreload::open(options(1, 4));
  bool differs = false;
  for (std::uint64_t step = 0; step < loader.batches_per_epoch(); ++step) {
    EXPECT_EQ(loader.positions(0, step).size(), slice.positions(0, step).size());
    differs = differs || loader.positions(0, step) != slice.positions(0, step);
  }
  EXPECT_TRUE(differs);
}

// R3: the state knows nothing of hosts.
TEST_F(LoaderBalancedTest, AStateThatWasSavedOnSomeHostsResumesOnOthers) {
  const Seen expected = reference(kSamples, options(0, 1), 2);
  for (const std::uint64_t steps : {1u, 7u, 12u}) {
    const Roster before = roster_of({2, 2, 2});
    Seen seen;
    State state;
    for (std::uint32_t rank = 0; rank < before.world(); ++rank) {
      Loader loader = open(options(rank, before.world()), before);
      ASSERT_TRUE(read_epoch(loader, seen, steps));
      state = loader.position();
    }
    seen.merge(all(roster_of({1, 1, 1, 1}), 2, &state));
    EXPECT_EQ(seen, expected) << steps << " steps";
  }
}

TEST_F(LoaderBalancedTest, BadSamplesAreReplacedAsByOneLearner) {
  ledger_.folder().write(Ledger::file(33), "too short");
  ledger_.folder().write(Ledger::file(444), "too short");
  const auto replaced = [&](std::uint32_t world, const std::optional<Roster>& roster) {
    std::map<Position, SampleId> found;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      LoaderOptions own = options(rank, world);
      own.on_error = OnError::kReplace;
      auto loader = open_with_seams(own, {.roster = roster});
      EXPECT_TRUE(loader.ok());
      for (auto batch = loader->next(); batch.ok() && *batch; batch = loader->next()) {
        for (std::size_t i = 0; i < (*batch)->size(); ++i) found[(*batch)->positions()[i]] = (*batch)->ids()[i];
      }
    }
    return found;
  };
  const auto alone = replaced(1, std::nullopt);
  EXPECT_EQ(alone.size(), kSamples);
  EXPECT_EQ(replaced(4, roster_of({2, 2})), alone);
}

TEST_F(LoaderBalancedTest, ARosterOfAnotherWorldIsRefusedWithBothNumbers) {
  const auto refused = open_with_seams(options(0, 3), {.roster = roster_of({2, 2})});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("4 learners"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().message.find("world is 3"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace foreload
