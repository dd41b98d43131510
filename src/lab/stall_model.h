// The arithmetic of stalls: how fast a job goes, what it waits for, and how much would be enough. Pure. Rates are
// samples per second, shares are 0 … 1; a rate that limits nothing is infinite.
//
//   F = min over origins of rate / share      reads of different origins overlap
//   V = min(F, P, G), W = min(P, G)           fetch, prep, accelerator
//   busy V/G + prep stall V/W − V/G + fetch stall 1 − V/W = 1
#pragma once

#include <limits>
#include <optional>
#include <span>

namespace foreload {

inline constexpr double kAnyRate = std::numeric_limits<double>::infinity();

// One place where samples come from.
struct FetchPath {
  double share = 0;  // of the samples
  double rate = kAnyRate;
};
double fetch_rate(std::span<const FetchPath> paths);

enum class Bound { kFetch, kPrep, kAccelerator };
const char* bound_name(Bound bound);  // "fetch", …

struct Stalls {
  double rate = 0;
  Bound bound = Bound::kAccelerator;  // of equals, the one that costs least to be rid of: accelerator, prep, fetch
  double busy = 0;                    // shares of the time; without an accelerator, all of it is stall
  double fetch = 0;
  double prep = 0;
};
Stalls stalls(double fetch, double prep, double accelerator);

// Hits of strict LRU that holds this share of a dataset which every epoch reads once in a new order.
double lru_hits(double held);
// The page cache lies between that and what never evicts; where is not known, so the middle is taken.
double page_cache_hits(double held);

// The smallest share to cache with which `needed` samples per second are fetched: 1 − S/needed. Nothing: the cache is
// too slow to bring its share of them.
std::optional<double> sufficient_cache(double cache, double storage, double needed);
// The storage rate with which they are, when this share is cached.
double sufficient_storage(double cached, double needed);

// Share of the samples that move between hosts when each host takes `per_host` samples of a global batch and, as far as
// equal counts allow, those that it has.
double balanced_traffic(unsigned hosts, double per_host);

}  // namespace foreload
