#include "source/packed.h"

#include <algorithm>
#include <bit>

namespace foreload {

static_assert(std::endian::native == std::endian::little, "columns are little-endian and read in place");

namespace {

unsigned width_for(std::uint64_t greatest) {
  if (greatest == 0) return 0;
  if (greatest <= 0xff) return 1;
  if (greatest <= 0xffff) return 2;
  return greatest <= 0xffffffff ? 4 : 8;
}

}  // namespace

PackedColumn pack(std::span<const std::int64_t> values) {
  PackedColumn column;
  column.count = values.size();
  if (values.empty()) return column;
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  column.base = *least;
  // Unsigned: the distance between two signed numbers may exceed the signed range.
  const auto base = static_cast<std::uint64_t>(*least);
  column.width = width_for(static_cast<std::uint64_t>(*greatest) - base);
  column.bytes.resize(values.size() * column.width);
  if (column.width == 0) return column;
  std::byte* out = column.bytes.data();
  for (const std::int64_t value : values) {
    const std::uint64_t distance = static_cast<std::uint64_t>(value) - base;
    std::memcpy(out, &distance, column.width);
    out += column.width;
  }
  return column;
}

}  // namespace foreload
