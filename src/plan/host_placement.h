// HostPlacement: which host's memory or disk is home of which sample. Pure in (sizes, seed, roster), alike on every
// host. A sample has at most one home. Memory of all hosts comes first, then disk; each host gets as many samples as
// its learners' share of a global batch as long as it has room, because that keeps moves small. 2 bytes per sample.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "foreload/types.h"
#include "plan/roster.h"

namespace foreload {

enum class HomeTier : std::uint8_t { kMemory, kDisk };

class Home {
 public:
  static constexpr std::uint32_t kNobody = Roster::kMostHosts;

  Home() = default;  // nowhere
  Home(HostIndex host, HomeTier tier)
      : word_(static_cast<std::uint16_t>(host | (tier == HomeTier::kDisk ? kDiskBit : 0))) {}

  bool exists() const { return word_ != kNobody; }
  // kNobody if there is none.
  HostIndex host() const { return word_ & (kDiskBit - 1); }
  HomeTier tier() const { return word_ >= kDiskBit ? HomeTier::kDisk : HomeTier::kMemory; }
  // In memory, nowhere, on disk: an index for tables.
  std::uint32_t kind() const { return word_ / kNobody; }
  static constexpr std::size_t kKinds = 3;
  bool operator==(const Home&) const = default;

 private:
  static constexpr std::uint32_t kDiskBit = 2 * kNobody;
  std::uint16_t word_ = kNobody;
};

class HostPlacement {
 public:
  HostPlacement() = default;  // nothing has a home
  // `footprint(id)`: what the sample takes of a tier; 0: it can not be kept. Everything has a home if the memories, or
  // else the memories and disks, have room for one largest sample per host more than the data needs.
  static HostPlacement plan(std::uint64_t samples, std::uint64_t seed, const Roster& roster,
                            const std::function<Bytes(SampleId)>& footprint);

  std::uint64_t samples() const { return homes_.size(); }
  Home home(SampleId id) const { return homes_[id]; }  // REQUIRES: id < samples().
  std::uint64_t homes(HostIndex host, HomeTier tier) const { return tallies_[place(host, tier)].homes; }
  Bytes bytes(HostIndex host, HomeTier tier) const { return tallies_[place(host, tier)].bytes; }  // Σ footprint

 private:
  class Dealing;
  struct Tally {
    std::uint64_t homes = 0;
    Bytes bytes = 0;
  };
  static std::size_t place(HostIndex host, HomeTier tier) { return 2 * host + (tier == HomeTier::kDisk ? 1 : 0); }

  std::vector<Home> homes_;
  std::vector<Tally> tallies_;  // by host, memory and disk
};

}  // namespace foreload
