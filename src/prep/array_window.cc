// The trailing dimensions that are taken whole, and one more, make a run of consecutive bytes; the others are counted
// through like the digits of a clock, the last the fastest.
#include "prep/array_window.h"

#include <array>
#include <cstring>

#include "base/check.h"
#include "prep/npy.h"

namespace foreload {

void copy_window(std::span<const std::byte> from, std::size_t element_bytes, const ArrayWindow& window,
                 std::span<std::byte> out) {
  const std::size_t rank = window.shape.size();
  FORELOAD_CHECK(rank <= NpyHeader::kMaxRank && window.origin.size() == rank && window.size.size() == rank,
                 "the chain checked the window against the array");
  std::array<std::size_t, NpyHeader::kMaxRank> stride{};  // bytes from one place of a dimension to the next
  std::size_t bytes = element_bytes;
  for (std::size_t i = rank; i-- > 0; bytes *= window.shape[i]) stride[i] = bytes;
  std::size_t outer = rank;  // dimensions that are counted through
  std::size_t run = element_bytes;
  bool whole = true;
  while (outer > 0 && whole) {
    --outer;
    run *= window.size[outer];
    whole = window.size[outer] == window.shape[outer];
  }
  std::size_t place = 0;
  for (std::size_t i = 0; i < rank; ++i) place += window.origin[i] * stride[i];
  std::array<std::uint64_t, NpyHeader::kMaxRank> digit{};
  for (std::size_t done = 0; done < out.size(); done += run) {
    std::memcpy(out.data() + done, from.data() + place, run);
    for (std::size_t i = outer; i-- > 0;) {
      place += stride[i];
      if (++digit[i] < window.size[i]) break;
      place -= digit[i] * stride[i];
      digit[i] = 0;
    }
  }
}

}  // namespace foreload
