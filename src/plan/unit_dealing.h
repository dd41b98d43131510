// UnitDealing: who consumes which units of one global batch, given where they are at home and what they cost there and
// elsewhere. Hosts get exactly their counts, as few units as possible leave their home, and the largest load of a host,
// and then of a learner, is kept small. Pure; the objects keep their memory from batch to batch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace foreload {

struct Units {
  std::vector<std::uint16_t> homes;  // host; without one the number of hosts
  std::vector<std::uint32_t> own;    // cost in its home
  std::vector<std::uint32_t> away;   // cost elsewhere

  void resize(std::size_t count) {
    homes.resize(count);
    own.resize(count);
    away.resize(count);
  }
};

class UnitDealing {
 public:
  Units units{};  // to be filled before

  // `counts`: units by host. REQUIRES: their sum is the number of units.
  void to_hosts(std::span<const std::uint32_t> counts);
  // `counts`: units by rank; `first_ranks`: by host, and the end. REQUIRES: to_hosts() with the sums of these counts.
  void to_learners(std::span<const std::uint32_t> counts, std::span<const std::uint32_t> first_ranks);

  std::span<const std::uint16_t> hosts() const { return hosts_; }        // by unit
  std::span<const std::uint16_t> learners() const { return learners_; }  // by unit: ranks

 private:
  struct Side {
    std::uint64_t load = 0;
    std::uint32_t homes = 0;  // units whose home it is
    std::uint32_t keeps = 0;  // of them still to be kept …
    std::uint32_t gives = 0;  // … and to be given away
  };
  // A host or learner that can take more.
  struct Bin {
    std::uint64_t load = 0;
    std::uint32_t room = 0;
    std::uint32_t who = 0;
  };

  void open_hosts(std::span<const std::uint32_t> counts);
  std::span<Bin> open_takers(std::span<const std::uint32_t> counts);
  void open_learners(std::span<const std::uint32_t> counts, std::span<const std::uint32_t> first_ranks);
  static bool is_lighter(const Bin& a, const Bin& b) { return a.load != b.load ? a.load < b.load : a.who < b.who; }
  static std::uint32_t put(std::span<Bin>& heap, std::uint32_t cost);
  template <typename UnitAt, typename Cost>
  void order_by_cost(std::size_t count, UnitAt unit_at, Cost cost);

  std::vector<std::uint16_t> hosts_;
  std::vector<std::uint16_t> learners_;
  std::vector<std::uint32_t> order_;  // units, most expensive first
  std::vector<Side> sides_;           // by host, then of units without a home
  std::vector<Bin> bins_;
  std::vector<std::uint32_t> open_units_;     // of hosts with a surplus, or without a home
  std::vector<std::uint32_t> open_learners_;  // by host: how many have room
};

}  // namespace foreload
