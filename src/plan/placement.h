// Placement: which samples have their home in a tier. Pure in (index sizes, capacity, seed): samples are
// taken in a keyed order of their own, so that the chosen ones are spread evenly over every epoch, until
// the capacity is full. They are admitted when first read and never evicted: in exactly-once epochs no
// other choice has more hit bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "foreload/types.h"

namespace foreload {

class Placement {
 public:
  Placement() = default;  // nothing has a home
  // `footprint(id)`: what the sample takes in the arena; 0: it can not be cached.
  static Placement plan(std::uint64_t samples, Bytes capacity, std::uint64_t seed,
                        const std::function<Bytes(SampleId)>& footprint);

  // The tier below `above`: what has no home there comes first, in the same order; what room is left then is for copies
  // of the homes above, so that they need not be fetched again after a restart.
  static Placement plan_below(const Placement& above, std::uint64_t samples, Bytes capacity, std::uint64_t seed,
                              const std::function<Bytes(SampleId)>& footprint);

  // The samples with most uses first, `uses[id]`; among equals in the same order as above.
  static Placement plan_most_used(std::span<const std::uint16_t> uses, Bytes capacity, std::uint64_t seed,
                                  const std::function<Bytes(SampleId)>& footprint);

  bool is_home(SampleId id) const;
  std::uint64_t homes() const { return homes_; }
  Bytes bytes() const { return bytes_; }  // Σ footprint of the homes

 private:
  class Filling;
  std::vector<bool> home_;
  std::uint64_t homes_ = 0;
  Bytes bytes_ = 0;
};

// All samples in the order of their right to a home: that of an epoch that is never trained on.
std::vector<SampleId> placement_order(std::uint64_t samples, std::uint64_t seed);

// With less than that left, a tier counts as full.
Bytes full_below(Bytes capacity);

}  // namespace foreload
