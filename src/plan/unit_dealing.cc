// A host with more units than its count has a surplus, which must leave; one with fewer has a deficit. No plan moves
// less than the sum of the surpluses, and this one moves no more: who has no surplus keeps all it has.
//
// The rest is a greedy dealing, most expensive first: a unit without a home goes to the least loaded host that still
// has room (a heap over the deficits); a unit of a host with surplus stays or goes there, wherever the load is then
// smaller, as long as its host may still keep and still has to give. As stayers fill their host's count first, it is
// the small ones that leave, unless a host with much slow data would be the last to finish. Then the same over the
// learners of each host.
//
// "Most expensive first" is up to 1/64: a counting sort over the leading 7 bits, ties in the order of the batch.
// O(units · log hosts).
#include "plan/unit_dealing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "plan/front_heap.h"

namespace foreload {
namespace {

constexpr unsigned kLeadingBits = 7;
constexpr std::uint32_t kBuckets = ((32 - kLeadingBits) << (kLeadingBits - 1)) + (1 << kLeadingBits);

// Grows with the cost; exact below 128.
std::uint32_t level(std::uint32_t cost) {
  const unsigned width = static_cast<unsigned>(std::bit_width(cost | 1));
  const unsigned shift = width > kLeadingBits ? width - kLeadingBits : 0;
  return (shift << (kLeadingBits - 1)) + (cost >> shift);
}

}  // namespace

// Counting sort of `count` units into order_.
template <typename UnitAt, typename Cost>
inline void UnitDealing::order_by_cost(std::size_t count, UnitAt unit_at, Cost cost) {
  std::array<std::uint32_t, kBuckets> ends{};
  for (std::size_t i = 0; i < count; ++i) ++ends[kBuckets - 1 - level(cost(unit_at(i)))];
  std::uint32_t sum = 0;
  for (std::uint32_t& end : ends) end = std::exchange(sum, sum + end);
  order_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t unit = unit_at(i);
    order_[ends[kBuckets - 1 - level(cost(unit))]++] = unit;
  }
}

// Gives to the least loaded; who is full leaves.
inline std::uint32_t UnitDealing::put(std::span<Bin>& heap, std::uint32_t cost) {
  Bin& front = heap.front();
  const std::uint32_t who = front.who;
  front.load += cost;
  if (--front.room == 0) {
    heap = without_front(heap, is_lighter);
  } else {
    sift_down(heap, 0, is_lighter);
  }
  return who;
}

// Who has no surplus keeps all it has; the other units are open.
void UnitDealing::open_hosts(std::span<const std::uint32_t> counts) {
  sides_.assign(counts.size() + 1, {});
  for (const std::uint16_t home : units.homes) ++sides_[home].homes;
  for (std::size_t host = 0; host < counts.size(); ++host) {
    Side& side = sides_[host];
    side.keeps = std::min(side.homes, counts[host]);
    side.gives = side.homes - side.keeps;
  }
  sides_.back().gives = sides_.back().homes;
  hosts_ = units.homes;
  open_units_.resize(hosts_.size());
  std::size_t open = 0;
  for (std::uint32_t unit = 0; unit < hosts_.size(); ++unit) {  // without branches that nobody could predict
    Side& side = sides_[units.homes[unit]];
    const bool is_open = side.gives > 0;
    open_units_[open] = unit;
    open += is_open ? 1 : 0;
    side.load += is_open ? 0 : units.own[unit];
  }
  open_units_.resize(open);
}

// The heap of hosts that have room for units of others.
std::span<UnitDealing::Bin> UnitDealing::open_takers(std::span<const std::uint32_t> counts) {
  bins_.clear();
  for (std::uint32_t host = 0; host < counts.size(); ++host) {
    const Side& side = sides_[host];
    if (side.homes < counts[host]) bins_.push_back({side.load, counts[host] - side.homes, host});
  }
  const std::span<Bin> takers(bins_);
  heapify(takers, is_lighter);
  return takers;
}

void UnitDealing::to_hosts(std::span<const std::uint32_t> counts) {
  open_hosts(counts);
  std::span<Bin> takers = open_takers(counts);
  order_by_cost(
      open_units_.size(), [&](std::size_t i) { return open_units_[i]; },
      [&](std::uint32_t unit) { return units.away[unit]; });
  for (const std::uint32_t unit : order_) {
    Side& side = sides_[units.homes[unit]];
    const std::uint32_t away = units.away[unit];
    const bool may_stay = side.keeps > 0;
    const bool may_go = side.gives > 0;
    if (may_go && (!may_stay || takers.front().load + away < side.load + units.own[unit])) {
      side.gives -= 1;
      hosts_[unit] = static_cast<std::uint16_t>(put(takers, away));
    } else {
      side.keeps -= 1;
      side.load += units.own[unit];
    }
  }
}

void UnitDealing::open_learners(std::span<const std::uint32_t> counts, std::span<const std::uint32_t> first_ranks) {
  bins_.resize(counts.size());
  open_learners_.assign(first_ranks.size() - 1, 0);
  for (std::size_t host = 0; host < open_learners_.size(); ++host) {
    std::uint32_t end = first_ranks[host];
    for (std::uint32_t rank = first_ranks[host]; rank < first_ranks[host + 1]; ++rank) {
      if (counts[rank] > 0) bins_[end++] = {0, counts[rank], rank};
    }
    open_learners_[host] = end - first_ranks[host];
  }
}

void UnitDealing::to_learners(std::span<const std::uint32_t> counts, std::span<const std::uint32_t> first_ranks) {
  open_learners(counts, first_ranks);
  learners_.resize(hosts_.size());
  const auto cost = [&](std::uint32_t unit) {
    return hosts_[unit] == units.homes[unit] ? units.own[unit] : units.away[unit];
  };
  order_by_cost(
      hosts_.size(), [](std::size_t i) { return static_cast<std::uint32_t>(i); }, cost);
  for (const std::uint32_t unit : order_) {
    const std::uint16_t host = hosts_[unit];
    std::span<Bin> heap(bins_.data() + first_ranks[host], open_learners_[host]);
    learners_[unit] = static_cast<std::uint16_t>(put(heap, cost(unit)));
    open_learners_[host] = static_cast<std::uint32_t>(heap.size());
  }
}

}  // namespace foreload
