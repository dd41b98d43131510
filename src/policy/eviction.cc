#include "policy/eviction.h"

#include <array>

namespace foreload {

void RankedEviction::use(SampleId id, Moment now) {
  used_rank_ = rank(id, now);
  if (residents_.has(id)) residents_.put({used_rank_, id});
}

bool RankedEviction::admit(SampleId id, Room& room) {
  bool admitted = room.take(id);
  std::array<RankedSet::Member, kMostSpared> in_use;
  std::size_t spared = 0;
  for (unsigned victims = 0; !admitted && victims < kMostVictims && spared < kMostSpared;) {
    const auto worst = residents_.largest();
    if (!worst || worst->rank <= used_rank_) break;
    residents_.remove(worst->id);
    if (room.evict(worst->id)) {
      admitted = room.take(id);
      ++victims;
    } else {
      in_use[spared++] = *worst;
    }
  }
  while (spared > 0) residents_.put(in_use[--spared]);
  if (admitted) residents_.put({used_rank_, id});
  return admitted;
}

BeladyEviction::BeladyEviction(const Stream& stream)
    : RankedEviction(stream.schedule().options().samples), next_use_(stream) {}

void BeladyEviction::restart(Moment now) {
  next_use_.restart(now);
  residents_.rank_anew([&](SampleId id) { return next_use_.of(id); });
}

std::uint64_t BeladyEviction::rank(SampleId id, Moment now) {
  next_use_.advance(now);
  for (const SampleId sighted : next_use_.sighted()) {
    if (residents_.has(sighted)) residents_.put({next_use_.of(sighted), sighted});
  }
  return next_use_.of(id);
}

std::unique_ptr<EvictionPolicy> make_eviction(Eviction kind, const Placement& placement, const Stream& stream) {
  if (kind == Eviction::kBelady) return std::make_unique<BeladyEviction>(stream);
  if (kind == Eviction::kLru) return std::make_unique<LruEviction>(stream.schedule().options().samples);
  return std::make_unique<KeptHomes>(placement);
}

Bytes eviction_bytes(Eviction kind, const Stream& stream) {
  if (!evicts(kind)) return 0;
  const Bytes residents = RankedSet::bytes_for(stream.schedule().options().samples);
  return residents + (kind == Eviction::kBelady ? NextUse::bytes_for(stream) : 0);
}

}  // namespace foreload
