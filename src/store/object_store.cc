#include "store/object_store.h"

#include <charconv>
#include <limits>

#include "base/hash.h"

namespace foreload {
namespace {

// Of "bytes 0-511/123456": what stands behind the slash; 0: nothing useful.
Bytes whole_size(std::string_view content_range) {
  const std::size_t slash = content_range.find('/');
  if (slash == std::string_view::npos) return 0;
  const std::string_view number = content_range.substr(slash + 1);
  Bytes size = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), size);
  return parsed.ec == std::errc() && parsed.ptr == number.data() + number.size() ? size : 0;
}

}  // namespace

FileStamp stamp_of(const HttpResponse& response) {
  const std::string& validator = response.etag.empty() ? response.last_modified : response.etag;
  FileStamp stamp;
  stamp.size = response.content_range.empty() ? response.content_length : whole_size(response.content_range);
  if (validator.empty()) return stamp;
  const std::uint64_t hash = hash_bytes(std::as_bytes(std::span(validator.data(), validator.size())));
  // Positive and never 0, which means "none".
  stamp.mtime_ns = static_cast<std::int64_t>(hash >> 1 | 1);
  return stamp;
}

}  // namespace foreload
