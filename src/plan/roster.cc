#include "plan/roster.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace foreload {
namespace {

Error wrong(const RosterHost& host, std::size_t index, const std::string& what) {
  return {Code::kInvalid, fmt::format("roster: host {} ({}): {}", index, host.name, what)};
}

Status check_rates(const RosterHost& host, std::size_t index) {
  if (!host.rates.empty() && host.rates.size() != host.learners) {
    return wrong(host, index,
                 fmt::format("{} rates for {} learners; give one for each, or none", host.rates.size(), host.learners));
  }
  for (const std::uint32_t rate : host.rates) {
    if (rate == 0 || rate > Roster::kMostRate) {
      return wrong(host, index, fmt::format("a rate of {}; rates are 1 to {}", rate, Roster::kMostRate));
    }
  }
  return {};
}

// Sums that later code makes without looking stay in their types.
Status check_sums(std::span<const RosterHost> hosts) {
  std::uint64_t learners = 0;
  Bytes memory = 0;
  Bytes disk = 0;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const RosterHost& host = hosts[i];
    learners += host.learners;
    if (learners > Roster::kMostLearners) {
      return wrong(host, i, fmt::format("with its learners there are {}; at most {}", learners, Roster::kMostLearners));
    }
    if (host.memory > Roster::kMostBytes - memory || host.disk > Roster::kMostBytes - disk) {
      return wrong(host, i,
                   fmt::format("with its {} bytes of memory and {} of disk there would be more than 2^62; "
                               "correct its capacities",
                               host.memory, host.disk));
    }
    memory += host.memory;
    disk += host.disk;
  }
  if (learners == 0) return Error{Code::kInvalid, "roster: no host has a learner; give at least one"};
  return {};
}

Status check_costs(const OriginCosts& costs) {
  for (const std::uint32_t cost :
       {costs.own_memory, costs.own_disk, costs.peer_memory, costs.peer_disk, costs.source}) {
    if (cost == 0 || cost > Roster::kMostCost) {
      return Error{Code::kInvalid,
                   fmt::format("roster: a cost of {} per origin; costs are 1 to {}", cost, Roster::kMostCost)};
    }
  }
  return {};
}

}  // namespace

Result<Roster> Roster::create(std::vector<RosterHost> hosts, const OriginCosts& costs) {
  if (hosts.empty()) return Error{Code::kInvalid, "roster: there are no hosts; give at least one"};
  if (hosts.size() > kMostHosts) {
    return wrong(hosts[kMostHosts], kMostHosts, fmt::format("one of {}; at most {}", hosts.size(), kMostHosts));
  }
  FORELOAD_TRY(check_sums(hosts));
  for (std::size_t i = 0; i < hosts.size(); ++i) FORELOAD_TRY(check_rates(hosts[i], i));
  FORELOAD_TRY(check_costs(costs));
  return Roster(std::move(hosts), costs);
}

Roster::Roster(std::vector<RosterHost> hosts, const OriginCosts& costs) : hosts_(std::move(hosts)), costs_(costs) {
  Hasher hasher;
  hasher.add("foreload roster 1").add(hosts_.size());
  first_rank_.push_back(0);
  for (const RosterHost& host : hosts_) {
    first_rank_.push_back(first_rank_.back() + host.learners);
    rates_.insert(rates_.end(), host.rates.begin(), host.rates.end());
    rates_.resize(first_rank_.back(), 1);
    hasher.add(host.learners).add(host.memory).add(host.disk);
  }
  equal_rates_ = std::adjacent_find(rates_.begin(), rates_.end(), std::not_equal_to<>()) == rates_.end();
  for (const std::uint32_t rate : rates_) hasher.add(rate);
  hasher.add(costs_.own_memory).add(costs_.own_disk).add(costs_.peer_memory).add(costs_.peer_disk).add(costs_.source);
  hash_ = hasher.value();
}

HostIndex Roster::host_of(std::uint32_t rank) const {
  FORELOAD_CHECK(rank < world(), "ranks are 0 … world()-1");
  const auto after = std::upper_bound(first_rank_.begin(), first_rank_.end(), rank);
  return static_cast<HostIndex>(after - first_rank_.begin() - 1);
}

std::uint64_t Roster::share(HostIndex host) const {
  return std::accumulate(rates_.begin() + first_rank(host), rates_.begin() + end_rank(host), std::uint64_t{0});
}

}  // namespace foreload
