#include "plan/roster.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace foreload {
namespace {

std::vector<RosterHost> three_hosts() {
  return {{.name = "a", .learners = 2, .memory = 100, .disk = 1'000},
          {.name = "b", .learners = 0, .memory = 50},
          {.name = "c", .learners = 3, .memory = 7, .disk = 9, .rates = {4, 1, 2}}};
}

Roster made(std::vector<RosterHost> hosts, const OriginCosts& costs = {}) {
  auto roster = Roster::create(std::move(hosts), costs);
  EXPECT_TRUE(roster.ok()) << roster.error().message;
  return *std::move(roster);
}

std::string refusal(std::vector<RosterHost> hosts, const OriginCosts& costs = {}) {
  const auto roster = Roster::create(std::move(hosts), costs);
  EXPECT_FALSE(roster.ok());
  if (roster.ok()) return "";
  EXPECT_EQ(roster.error().code, Code::kInvalid);
  return roster.error().message;
}

TEST(RosterTest, RanksAreConsecutiveOverTheHosts) {
  const Roster roster = made(three_hosts());
  EXPECT_EQ(roster.world(), 5u);
  std::vector<HostIndex> hosts;
  for (std::uint32_t rank = 0; rank < roster.world(); ++rank) {
    hosts.push_back(roster.host_of(rank));
    EXPECT_GE(rank, roster.first_rank(hosts.back()));
    EXPECT_LT(rank, roster.end_rank(hosts.back()));
  }
  EXPECT_EQ(hosts, (std::vector<HostIndex>{0, 0, 2, 2, 2}));
  EXPECT_EQ(roster.first_rank(1), roster.end_rank(1));
}

TEST(RosterTest, AShareIsTheSumOfTheRates) {
  const Roster roster = made(three_hosts());
  EXPECT_EQ(std::vector<std::uint32_t>(roster.rates().begin(), roster.rates().end()),
            (std::vector<std::uint32_t>{1, 1, 4, 1, 2}));
  EXPECT_EQ(roster.share(0), 2u);
  EXPECT_EQ(roster.share(1), 0u);
  EXPECT_EQ(roster.share(2), 7u);
  EXPECT_FALSE(roster.equal_rates());
  EXPECT_TRUE(made({{.learners = 2, .rates = {3, 3}}, {.learners = 1, .rates = {3}}}).equal_rates());
}

// Hosts of different releases must agree, or refuse each other for a reason.
TEST(RosterTest, TheHashIsTheSameInEveryReleaseAndOnEveryMachine) {
  EXPECT_EQ(made(three_hosts()).hash(), 4671960584364303529u);
}

TEST(RosterTest, TheHashIsOfAllThatDecidesAndOfNothingElse) {
  const std::uint64_t hash = made(three_hosts()).hash();
  std::vector<RosterHost> renamed = three_hosts();
  renamed[0].name = "other";
  renamed[0].rates = {1, 1};
  EXPECT_EQ(made(renamed).hash(), hash) << "names decide nothing, and rates of 1 are the default";

  const std::vector<std::function<void(std::vector<RosterHost>&, OriginCosts&)>> changes = {
      [](auto& hosts, auto&) { std::swap(hosts[0], hosts[1]); },
      [](auto& hosts, auto&) { hosts[0].learners = 3; },
      [](auto& hosts, auto&) { hosts[0].memory += 1; },
      [](auto& hosts, auto&) { hosts[0].disk += 1; },
      [](auto& hosts, auto&) { hosts[2].rates[1] = 2; },
      [](auto& hosts, auto&) { hosts.push_back({.learners = 0}); },
      [](auto&, auto& costs) { costs.own_memory += 1; },
      [](auto&, auto& costs) { costs.own_disk += 1; },
      [](auto&, auto& costs) { costs.peer_memory += 1; },
      [](auto&, auto& costs) { costs.peer_disk += 1; },
      [](auto&, auto& costs) { costs.source += 1; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    std::vector<RosterHost> hosts = three_hosts();
    OriginCosts costs;
    changes[i](hosts, costs);
    EXPECT_NE(made(hosts, costs).hash(), hash) << "change " << i;
  }
}

TEST(RosterTest, WhatCanNotBeIsRefusedAndTheHostIsNamed) {
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(refusal({}), "no hosts");
  has(refusal({{.name = "a", .learners = 0}}), "no host has a learner");
  has(refusal({{.name = "a"}, {.name = "b", .learners = 3, .rates = {1, 2}}}), "host 1 (b): 2 rates for 3 learners");
  has(refusal({{.name = "a", .learners = 1, .rates = {0}}}), "host 0 (a): a rate of 0");
  has(refusal({{.name = "a", .learners = 1, .rates = {1'000'001}}}), "a rate of 1000001");
  has(refusal({{.name = "a", .learners = 65'536}, {.name = "b"}}), "host 1 (b): with its learners there are 65537");
  has(refusal({{.name = "a", .learners = ~0u}, {.name = "b", .learners = ~0u}}), "host 0 (a)");
  has(refusal({{.name = "a", .memory = Bytes{1} << 62}, {.name = "b", .memory = 1}}), "host 1 (b)");
  has(refusal({{.name = "a", .disk = ~Bytes{0}}}), "host 0 (a)");
  has(refusal({{.name = "a"}}, {.own_disk = 0}), "a cost of 0");
  has(refusal({{.name = "a"}}, {.source = 256}), "a cost of 256");
  std::vector<RosterHost> many(4097);
  many.back().name = "last";
  has(refusal(many), "host 4096 (last)");
}

TEST(RosterTest, TheLargestRosterIsTaken) {
  const Roster roster = made(std::vector<RosterHost>(4096, {.learners = 16, .memory = Bytes{1} << 50}));
  EXPECT_EQ(roster.world(), 65'536u);
  EXPECT_EQ(roster.host_of(65'535), 4095u);
}

}  // namespace
}  // namespace foreload
