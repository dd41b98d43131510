#include "plan/balanced.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <numbers>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "plan/test_statistics.h"

namespace foreload {
namespace {

constexpr LastBatch kRules[] = {LastBatch::kAuto, LastBatch::kRagged, LastBatch::kPad, LastBatch::kDrop};

Roster made(std::vector<RosterHost> hosts) {
  auto roster = Roster::create(std::move(hosts));
  EXPECT_TRUE(roster.ok()) << roster.error().message;
  return *std::move(roster);
}

// All that an assignment is made of.
struct Case {
  ScheduleOptions schedule;
  JobShape shape;
  std::vector<RosterHost> hosts;
  std::vector<Bytes> lengths;

  BalancedAssignment assignment() const {
    const Roster roster = made(hosts);
    const auto length = [this](SampleId id) { return lengths[id]; };
    return {Schedule(schedule), SliceAssignment(shape), roster,
            HostPlacement::plan(schedule.samples, schedule.seed, roster, length), length};
  }
};

Case case_of(const ScheduleOptions& schedule, const JobShape& shape, std::vector<RosterHost> hosts,
             std::vector<Bytes> lengths = {}) {
  Case c;
  c.schedule = schedule;
  c.shape = shape;
  c.hosts = std::move(hosts);
  c.lengths = std::move(lengths);
  return c;
}

std::vector<RosterHost> random_hosts(std::mt19937_64& random, Bytes data) {
  std::vector<RosterHost> hosts(1 + random() % 8);
  const bool rates = random() % 3 == 0;
  const bool equal = random() % 2 == 0;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    RosterHost& host = hosts[i];
    host.name = std::to_string(random());
    host.learners = i == 0 || equal ? 2 : static_cast<std::uint32_t>(random() % 4);
    host.memory = random() % 4 == 0 ? 0 : random() % (2 * data / hosts.size() + 2);
    host.disk = random() % 2 == 0 ? 0 : random() % (2 * data / hosts.size() + 2);
    for (std::uint32_t r = 0; rates && r < host.learners; ++r) {
      host.rates.push_back(1 + static_cast<std::uint32_t>(random() % 5));
    }
  }
  return hosts;
}

Case random_case(std::mt19937_64& random) {
  Case c;
  c.schedule = {
      .samples = 1 + random() % (random() % 4 == 0 ? 12 : 600), .seed = random(), .shuffle = random() % 8 != 0};
  c.lengths.resize(c.schedule.samples);
  const Bytes largest = 1 + random() % (random() % 2 == 0 ? 300'000 : 20);
  for (Bytes& length : c.lengths) length = random() % 9 == 0 ? 0 : random() % largest;
  if (random() % 16 == 0) c.lengths[0] = Bytes{1} << 33;
  if (random() % 8 == 0) {
    c.schedule.shuffle = true;
    c.schedule.echo = 2;
    c.schedule.echo_window = 1 + random() % 40;
  }
  c.hosts = random_hosts(random, std::accumulate(c.lengths.begin(), c.lengths.end(), Bytes{0}));
  c.shape = {
      .samples = c.schedule.samples * c.schedule.echo, .last_batch = kRules[random() % 4], .unit = 1 + random() % 3};
  c.shape.world = made(c.hosts).world();
  c.shape.global_batch = c.shape.unit * (1 + random() % 80);
  return c;
}

// The host that is home of most bytes of whole unit `unit`; the number of hosts for none.
HostIndex home_of_unit(const BalancedAssignment& assignment, const BalancedStep& step, const Case& c,
                       std::size_t unit) {
  std::map<HostIndex, Bytes> bytes;
  for (std::size_t i = unit * c.shape.unit; i < (unit + 1) * c.shape.unit; ++i) {
    const SampleId id = step.samples()[i];
    const Home home = assignment.placement().home(id);
    if (home.exists()) bytes[home.host()] += std::min<Bytes>(c.lengths[id], ~std::uint32_t{0});
  }
  HostIndex best = static_cast<HostIndex>(c.hosts.size());
  for (const auto& [host, sum] : bytes) {
    if (best == c.hosts.size() || sum > bytes[best]) best = host;
  }
  return best;
}

// Who takes each offset; fails unless each is taken once, in ascending order and by so many as it should be.
std::vector<std::uint32_t> takers(const BalancedAssignment& assignment, const BalancedStep& step,
                                  std::uint64_t number) {
  const std::uint32_t world = assignment.roster().world();
  std::vector<std::uint32_t> ranks(assignment.slice().batch_size(number), world);
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    const auto offsets = step.offsets(rank);
    EXPECT_EQ(offsets.size(), assignment.count(number, rank));
    EXPECT_TRUE(std::ranges::is_sorted(offsets));
    for (const std::uint32_t offset : offsets) {
      EXPECT_EQ(ranks.at(offset), world) << "offset " << offset << " is taken twice";
      ranks[offset] = rank;
    }
  }
  EXPECT_EQ(std::ranges::count(ranks, world), 0) << "of " << ranks.size();
  return ranks;
}

void expect_counts(const BalancedAssignment& assignment, std::uint64_t number) {
  const Roster& roster = assignment.roster();
  const std::uint64_t unit = assignment.slice().shape().unit;
  const std::uint64_t length = assignment.slice().batch_size(number);
  const std::uint64_t units = (length + unit - 1) / unit;
  const auto sum = std::accumulate(roster.rates().begin(), roster.rates().end(), std::uint64_t{0});
  std::uint64_t all = 0;
  for (std::uint32_t rank = 0; rank < roster.world(); ++rank) {
    const std::uint64_t count = assignment.count(number, rank);
    all += count;
    if (roster.equal_rates()) {
      EXPECT_EQ(count, assignment.slice().share(number, rank).count);
      continue;
    }
    const std::uint64_t exact = units * roster.rates()[rank] / sum;
    EXPECT_GE(count + unit, exact * unit + (length % unit == 0 ? unit : 0));
    EXPECT_LE(count, (exact + 1) * unit);
  }
  EXPECT_EQ(all, length);
}

// No other plan with these counts moves fewer whole units.
void expect_least_moves(const BalancedAssignment& assignment, const BalancedStep& step, const Case& c,
                        const std::vector<std::uint32_t>& ranks) {
  std::vector<std::int64_t> surplus(c.hosts.size() + 1);
  std::int64_t moved = 0;
  for (std::size_t unit = 0; (unit + 1) * c.shape.unit <= ranks.size(); ++unit) {
    const std::uint32_t rank = ranks[unit * c.shape.unit];
    for (std::size_t i = 1; i < c.shape.unit; ++i) EXPECT_EQ(ranks[unit * c.shape.unit + i], rank) << "a unit is torn";
    const HostIndex home = home_of_unit(assignment, step, c, unit);
    const HostIndex host = assignment.roster().host_of(rank);
    ++surplus[home];
    --surplus[host];
    moved += home != c.hosts.size() && home != host ? 1 : 0;
  }
  std::int64_t least = 0;
  for (std::size_t host = 0; host < c.hosts.size(); ++host) least += std::max<std::int64_t>(0, surplus[host]);
  EXPECT_EQ(moved, least);
}

void expect_loads(const BalancedAssignment& assignment, const BalancedStep& step, const Case& c,
                  const std::vector<std::uint32_t>& ranks) {
  std::vector<HostLoad> loads(c.hosts.size());
  for (std::size_t offset = 0; offset < ranks.size(); ++offset) {
    const SampleId id = step.samples()[offset];
    const Home home = assignment.placement().home(id);
    const HostIndex host = assignment.roster().host_of(ranks[offset]);
    const Bytes length = std::min<Bytes>(c.lengths[id], ~std::uint32_t{0});
    if (!home.exists()) {
      loads[host].missed += 1;
      loads[host].missed_bytes += length;
    } else if (home.host() != host) {
      loads[host].received += 1;
      loads[host].received_bytes += length;
    }
  }
  for (std::size_t host = 0; host < c.hosts.size(); ++host) {
    EXPECT_EQ(step.loads()[host].received, loads[host].received);
    EXPECT_EQ(step.loads()[host].received_bytes, loads[host].received_bytes);
    EXPECT_EQ(step.loads()[host].missed, loads[host].missed);
    EXPECT_EQ(step.loads()[host].missed_bytes, loads[host].missed_bytes);
  }
}

TEST(BalancedTest, EveryPositionOnceWithTheRightCountsAndLeastMoves) {
  std::mt19937_64 random(fresh_seed());
  BalancedStep step;
  for (int trial = 0; trial < 2'000 && !testing::Test::HasFailure(); ++trial) {
    const Case c = random_case(random);
    SCOPED_TRACE("trial " + std::to_string(trial) + ": samples " + std::to_string(c.schedule.samples) + ", hosts " +
                 std::to_string(c.hosts.size()) + ", world " + std::to_string(c.shape.world) + ", global batch " +
                 std::to_string(c.shape.global_batch) + ", unit " + std::to_string(c.shape.unit));
    const BalancedAssignment assignment = c.assignment();
    const Schedule schedule(c.schedule);
    const std::uint64_t steps = assignment.slice().batches_per_epoch();
    for (std::uint64_t number = 0; number < steps; number += number + 3 < steps ? 1 + random() % 3 : 1) {
      assignment.plan(trial, number, step);
      const Position first = number * c.shape.global_batch;
      ASSERT_EQ(step.samples().size(), assignment.slice().batch_size(number));
      for (std::size_t i = 0; i < step.samples().size(); ++i) {
        ASSERT_EQ(step.samples()[i], schedule.sample_at(trial, assignment.slice().source_position(first + i)));
      }
      const std::vector<std::uint32_t> ranks = takers(assignment, step, number);
      expect_counts(assignment, number);
      expect_least_moves(assignment, step, c, ranks);
      expect_loads(assignment, step, c, ranks);
    }
  }
}

TEST(BalancedTest, APlanDependsOnItsInputsOnly) {
  std::mt19937_64 random(fresh_seed());
  BalancedStep used;
  for (int trial = 0; trial < 200; ++trial) {
    Case c = random_case(random);
    const BalancedAssignment assignment = c.assignment();
    if (assignment.slice().batches_per_epoch() == 0) continue;
    const std::uint64_t number = random() % assignment.slice().batches_per_epoch();
    assignment.plan(3, number, used);
    for (RosterHost& host : c.hosts) host.name += " renamed";
    BalancedStep fresh;
    c.assignment().plan(3, number, fresh);
    for (std::uint32_t rank = 0; rank < c.shape.world; ++rank) {
      ASSERT_TRUE(std::ranges::equal(used.offsets(rank), fresh.offsets(rank))) << "trial " << trial;
    }
  }
}

std::string text_of(const BalancedStep& step, std::uint32_t world) {
  std::string text;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    for (const std::uint32_t offset : step.offsets(rank)) text += std::to_string(offset) + " ";
    text += "| ";
  }
  return text;
}

// Also computed by an independent implementation.
TEST(BalancedTest, ThePlanIsTheSameInEveryReleaseAndOnEveryMachine) {
  Case c = case_of(
      {.samples = 40, .seed = 5}, {.samples = 40, .global_batch = 20, .world = 5},
      {{.learners = 2, .memory = 900'000}, {.learners = 2, .memory = 300'000, .disk = 400'000}, {.memory = 200'000}});
  for (SampleId id = 0; id < 40; ++id) c.lengths.push_back(10'000 + id * id * 50);
  BalancedStep step;
  c.assignment().plan(2, 1, step);
  EXPECT_EQ(text_of(step, 5), "2 5 6 12 | 8 9 11 19 | 3 4 10 18 | 0 13 14 16 | 1 7 15 17 | ");
  c.shape.global_batch = 40;
  c.shape.unit = 2;
  c.assignment().plan(3, 0, step);
  EXPECT_EQ(text_of(step, 5),
            "0 1 10 11 14 15 36 37 | 4 5 8 9 16 17 20 21 | 12 13 18 19 24 25 32 33 | 2 3 6 7 28 29 34 35 | "
            "22 23 26 27 30 31 38 39 | ");
}

TEST(BalancedTest, FewerSamplesThanRanksLeaveTheSameRanksWithoutAsSlices) {
  Case c = case_of({.samples = 3, .seed = 5},
                   {.samples = 3, .global_batch = 8, .world = 8, .last_batch = LastBatch::kRagged},
                   {{.learners = 4, .memory = 1'000}, {.learners = 4, .memory = 1'000}}, {10, 10, 10});
  const BalancedAssignment assignment = c.assignment();
  BalancedStep step;
  assignment.plan(0, 0, step);
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(step.offsets(rank).size(), assignment.slice().share(0, rank).count);
  }
}

TEST(BalancedTest, AnEpochWithoutBatchesIsNoTrouble) {
  Case c =
      case_of({.samples = 3, .seed = 5}, {.samples = 3, .global_batch = 8, .world = 2, .last_batch = LastBatch::kDrop},
              {{.learners = 2}}, {10, 10, 10});
  EXPECT_EQ(c.assignment().slice().batches_per_epoch(), 0u);
}

TEST(BalancedTest, TheLargestRosterIsPlanned) {
  constexpr std::uint64_t kSamples = 300'000;
  const Case c =
      case_of({.samples = kSamples, .seed = 5}, {.samples = kSamples, .global_batch = 131'072, .world = 65'536},
              std::vector<RosterHost>(4096, {.learners = 16, .memory = 5'000, .disk = 1'000}),
              std::vector<Bytes>(kSamples, 100));
  const BalancedAssignment assignment = c.assignment();
  BalancedStep step;
  for (std::uint64_t number = 0; number < assignment.slice().batches_per_epoch(); ++number) {
    assignment.plan(1, number, step);
    const std::vector<std::uint32_t> ranks = takers(assignment, step, number);
    expect_counts(assignment, number);
    expect_least_moves(assignment, step, c, ranks);
  }
}

TEST(BalancedTest, CountsFollowTheRatesInEveryFullBatch) {
  Case c = case_of({.samples = 100, .seed = 5},
                   {.samples = 100, .global_batch = 16, .world = 3, .last_batch = LastBatch::kDrop},
                   {{.learners = 2, .memory = 1'000, .rates = {1, 4}}, {.memory = 1'000, .rates = {2}}},
                   std::vector<Bytes>(100, 10));
  const BalancedAssignment assignment = c.assignment();
  for (std::uint64_t step = 0; step < 6; ++step) {
    EXPECT_EQ(assignment.count(step, 0), 2u) << "16/7 = 2.29";
    EXPECT_EQ(assignment.count(step, 1), 9u) << "64/7 = 9.14";
    EXPECT_EQ(assignment.count(step, 2), 5u) << "32/7 = 4.57, the largest remainder";
  }
}

struct Shares {
  double balanced = 0;
  double slice = 0;
};

// Of an epoch's bytes on 8 equal hosts that hold everything: how many are consumed away from home.
Shares moved_shares(std::uint64_t per_host) {
  constexpr std::uint64_t kSamples = 60'000;
  Case c = case_of({.samples = kSamples, .seed = 11}, {.samples = kSamples, .global_batch = 8 * per_host, .world = 16},
                   std::vector<RosterHost>(8, {.learners = 2, .memory = 4'000'000'000}));
  std::mt19937_64 random(1);
  for (SampleId id = 0; id < kSamples; ++id) c.lengths.push_back(20'000 + random() % 180'000);
  const BalancedAssignment assignment = c.assignment();
  Bytes all = 0;
  Bytes balanced = 0;
  Bytes slice = 0;
  BalancedStep step;
  for (std::uint64_t number = 0; number < assignment.slice().batches_per_epoch(); ++number) {
    assignment.plan(1, number, step);
    EXPECT_EQ(step.total().missed, 0u);
    balanced += step.total().received_bytes;
    for (std::size_t i = 0; i < step.samples().size(); ++i) {
      const SampleId id = step.samples()[i];
      const std::uint32_t rank = assignment.slice().rank_of(number * c.shape.global_batch + i);
      all += c.lengths[id];
      slice += assignment.placement().home(id).host() != assignment.roster().host_of(rank) ? c.lengths[id] : 0;
    }
  }
  return {static_cast<double>(balanced) / static_cast<double>(all),
          static_cast<double>(slice) / static_cast<double>(all)};
}

TEST(BalancedTest, HardlyAnyBytesMoveWhereSlicesMoveNearlyAll) {
  for (const std::uint64_t per_host : {32U, 64U, 128U}) {
    const Shares shares = moved_shares(per_host);
    const double formula = 1 / std::sqrt(2 * std::numbers::pi * static_cast<double>(per_host));
    EXPECT_LE(shares.balanced, 1.15 * formula) << per_host;
    EXPECT_GE(shares.balanced, 0.1 * formula) << "no plan can move so little: " << per_host;
    EXPECT_NEAR(shares.slice, 7.0 / 8, 0.02 * 7 / 8) << per_host;
    std::cout << per_host << " per host: " << shares.balanced << " of the bytes move, " << shares.balanced / formula
              << " of the formula; with slices " << shares.slice << '\n';
  }
}

}  // namespace
}  // namespace foreload
