#include "store/object_store.h"

#include <fmt/core.h>

#include <charconv>
#include <span>

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

Error ObjectStore::refused(std::string_view key, const HttpResponse& response) const {
  const int status = response.status;
  if (status == 404 || status == 410) return {Code::kNotFound, fmt::format("{} does not exist", display(key))};
  if (status == 401 || status == 403) {
    return {Code::kIo, fmt::format("{}: the server denies access (status {})", display(key), status)};
  }
  return {Code::kIo, fmt::format("{}: the server answers with status {}", display(key), status)};
}

HttpHeader range_header(Bytes offset, Bytes length) {
  return {"Range", fmt::format("bytes={}-{}", offset, offset + length - 1)};
}

std::int64_t validator_of(std::string_view etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  if (etag.empty()) return 0;
  const std::uint64_t hash = hash_bytes(std::as_bytes(std::span(etag.data(), etag.size())));
  // Positive and never 0, which means "none".
  return static_cast<std::int64_t>(hash >> 1 | 1);
}

FileStamp stamp_of(const HttpResponse& response) {
  const Bytes size = response.content_range.empty() ? response.content_length : whole_size(response.content_range);
  // A weak ETag does not promise the same bytes.
  if (response.etag.compare(0, 2, "W/") == 0) return {size, validator_of(response.etag + response.last_modified)};
  return {size, validator_of(response.etag.empty() ? response.last_modified : response.etag)};
}

}  // namespace foreload
