#include "lab/stall_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace foreload {

double fetch_rate(std::span<const FetchPath> paths) {
  double rate = kAnyRate;
  for (const FetchPath& path : paths) {
    if (path.share > 0) rate = std::min(rate, path.rate / path.share);
  }
  return rate;
}

const char* bound_name(Bound bound) {
  switch (bound) {
    case Bound::kFetch:
      return "fetch";
    case Bound::kPrep:
      return "prep";
    case Bound::kAccelerator:
      return "accelerator";
  }
  return "";
}

Stalls stalls(double fetch, double prep, double accelerator) {
  const double without_fetch = std::min(prep, accelerator);
  Stalls found;
  found.rate = std::min(fetch, without_fetch);
  found.bound = found.rate == accelerator ? Bound::kAccelerator : found.rate == prep ? Bound::kPrep : Bound::kFetch;
  if (!std::isfinite(found.rate)) return found;
  found.busy = found.rate / accelerator;
  found.fetch = 1 - found.rate / without_fetch;
  found.prep = found.rate / without_fetch - found.busy;
  return found;
}

double lru_hits(double held) {
  if (held >= 1) return 1;
  if (held <= 0) return 0;
  return held + (1 - held) * std::log1p(-held);
}

double page_cache_hits(double held) {
  const double most = std::clamp(held, 0.0, 1.0);
  return (lru_hits(most) + most) / 2;
}

std::optional<double> sufficient_cache(double cache, double storage, double needed) {
  if (needed <= storage) return 0;
  const double share = 1 - storage / needed;
  if (cache < needed * share) return std::nullopt;
  return share;
}

double sufficient_storage(double cached, double needed) {
  return std::max(0.0, 1 - cached) * needed;
}

double balanced_traffic(unsigned hosts, double per_host) {
  if (hosts <= 1) return 0;
  const double by_chance = 1 - 1.0 / hosts;
  if (per_host <= 0) return by_chance;
  return std::min(by_chance, 1 / std::sqrt(2 * std::numbers::pi * per_host));
}

}  // namespace foreload
