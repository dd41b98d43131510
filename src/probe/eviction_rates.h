// How many of a learner's uses each eviction policy finds in its own memory: the policy objects of the runtime, driven
// through a stream without bytes, threads or time. Samples count as equally large.
#pragma once

#include <cstdint>

#include "foreload/types.h"

namespace foreload {

struct EvictionCase {
  std::uint64_t samples = 20'000;
  std::uint32_t hosts = 1;  // with a cache and a learner each, which share nothing; the first one is looked at
  double cached = 0.25;     // share of the dataset that one cache holds
  Epoch epochs = 20;
  double zipf = 0;           // weight of the i-th sample ~ i^-zipf, drawn with replacement; 0: every sample once
  std::uint64_t batch = 64;  // per host
};

// Hits per epoch, as a share of the uses.
struct EvictionRates {
  double fixed = 0;  // `static`
  double frequency = 0;
  double belady = 0;
  double lru = 0;
  std::uint64_t uses = 0;  // per epoch
};

// `warm`: the first epoch, in which a cache is filled, is left out.
EvictionRates eviction_rates(const EvictionCase& subject, bool warm = false);

}  // namespace foreload
