#include "prep/row_hint.h"

#include <algorithm>
#include <array>

namespace foreload {
namespace {

// Sampling factors of 1 to 4 times eight.
constexpr std::array<std::uint32_t, 4> kMcuHeights{8, 16, 24, 32};
// One for upsampling, one for decoding at a fraction of the size, where a box ends at coarser pixels.
constexpr std::int64_t kMargin = 2;

}  // namespace

std::optional<RowHint> rows_around(std::span<const std::uint32_t> offsets, Dimensions picture, Interval wanted) {
  if (offsets.size() < 2) return std::nullopt;
  const std::size_t rows = offsets.size() - 1;
  std::optional<std::uint32_t> height;
  for (const std::uint32_t candidate : kMcuHeights) {
    if ((std::size_t{picture.height} + candidate - 1) / candidate != rows) continue;
    if (height) return std::nullopt;
    height = candidate;
  }
  if (!height) return std::nullopt;
  const std::int64_t first = std::max<std::int64_t>(wanted.first / *height - kMargin, 0);
  const std::int64_t end =
      std::min<std::int64_t>((wanted.end - 1) / *height + 1 + kMargin, static_cast<std::int64_t>(rows));
  return RowHint{offsets, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end)};
}

}  // namespace foreload
