// Roster: what the hosts of a job tell each other once, when they meet: their order, learners, room for homes, rates of
// their learners, and what a byte costs from where. Does not change during a run; all plans over hosts are pure in it.
// Ranks are consecutive over the hosts in order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

using HostIndex = std::uint32_t;  // in the roster

struct RosterHost {
  std::string name{};                  // for people; decides nothing
  std::uint32_t learners = 1;          // 0: lends its room only
  Bytes memory = 0;                    // for homes
  Bytes disk = 0;                      // for homes
  std::vector<std::uint32_t> rates{};  // samples of a learner per step, as weights of at least 1; empty: all 1
};

// How long a byte takes from each origin, relative to each other, 1 … 255. They only decide who gets which samples, so
// orders of magnitude are enough: memory 10 GB/s, a local NVMe, a peer over TLS or 10 Gbit/s, a peer that reads its
// disk first, storage that all hosts share.
struct OriginCosts {
  std::uint32_t own_memory = 1;
  std::uint32_t own_disk = 5;
  std::uint32_t peer_memory = 10;
  std::uint32_t peer_disk = 15;
  std::uint32_t source = 60;
};

class Roster {
 public:
  static constexpr std::size_t kMostHosts = 4096;
  static constexpr std::uint32_t kMostLearners = 65'536;
  static constexpr std::uint32_t kMostRate = 1'000'000;
  static constexpr std::uint32_t kMostCost = 255;
  static constexpr Bytes kMostBytes = Bytes{1} << 62;  // of all hosts together, in one tier

  // kInvalid names the host and what is wrong with it.
  static Result<Roster> create(std::vector<RosterHost> hosts, const OriginCosts& costs = {});

  std::span<const RosterHost> hosts() const { return hosts_; }
  const OriginCosts& costs() const { return costs_; }
  std::uint32_t world() const { return first_rank_.back(); }  // learners of all hosts
  std::uint32_t first_rank(HostIndex host) const { return first_rank_[host]; }
  std::uint32_t end_rank(HostIndex host) const { return first_rank_[host + 1]; }
  std::span<const std::uint32_t> first_ranks() const { return first_rank_; }  // by host, and the end
  HostIndex host_of(std::uint32_t rank) const;                                // REQUIRES: rank < world().
  std::span<const std::uint32_t> rates() const { return rates_; }             // by rank
  bool equal_rates() const { return equal_rates_; }
  std::uint64_t share(HostIndex host) const;  // Σ rates of its learners
  // Over all that decides, not over names: hosts with the same hash make the same plans.
  std::uint64_t hash() const { return hash_; }

 private:
  Roster(std::vector<RosterHost> hosts, const OriginCosts& costs);

  std::vector<RosterHost> hosts_;
  OriginCosts costs_;
  std::vector<std::uint32_t> first_rank_;  // one more than hosts
  std::vector<std::uint32_t> rates_;
  bool equal_rates_;
  std::uint64_t hash_;
};

// Which samples are at home where, and by which plan: in every message between hosts, and both sides must mean the
// same.
struct PeerKey {
  std::uint64_t fingerprint = 0;  // of the dataset
  std::uint64_t validators = 0;   // of its files
  std::uint64_t roster = 0;       // hash of the roster, and of what else decides about homes

  bool operator==(const PeerKey&) const = default;
};

}  // namespace foreload
