// The header Content-Range of a server that is not trusted. Whatever is understood must be a range inside the object,
// and say the same when it is written again.
#include "store/content_range.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto range = foreload::parse_content_range(text);
  if (!range) return 0;
  if (range->first > range->last || range->last >= range->size) std::abort();
  const std::string again = fmt::format("bytes {}-{}/{}", range->first, range->last, range->size);
  if (foreload::parse_content_range(again) != range) std::abort();
  return 0;
}
