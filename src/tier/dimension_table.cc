#include "tier/dimension_table.h"

namespace foreload {
namespace {

constexpr std::uint32_t kLargest = 0xffff;  // larger ones are not remembered

}  // namespace

Result<DimensionTable> DimensionTable::create(std::uint64_t samples) {
  FORELOAD_ASSIGN(Region region, Region::map(bytes_for(samples), "the table of dimensions"));
  return DimensionTable(std::move(region), samples);
}

void DimensionTable::note(SampleId id, Dimensions dimensions) {
  if (dimensions.width == 0 || dimensions.width > kLargest || dimensions.height > kLargest) return;
  const std::uint32_t packed = dimensions.width << 16 | dimensions.height;
  if (entry(id).exchange(packed, std::memory_order_relaxed) == 0) known_->fetch_add(1, std::memory_order_relaxed);
}

std::optional<Dimensions> DimensionTable::find(SampleId id) const {
  const std::uint32_t packed = entry(id).load(std::memory_order_relaxed);
  if (packed == 0) return std::nullopt;
  return Dimensions{.width = packed >> 16, .height = packed & kLargest};
}

std::vector<Dimensions> DimensionTable::list() const {
  std::vector<Dimensions> all(samples_);
  for (SampleId id = 0; id < samples_; ++id) all[id] = find(id).value_or(Dimensions{});
  return all;
}

}  // namespace foreload
