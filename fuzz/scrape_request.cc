// What somebody may send to the metrics server, over arbitrary bytes: a head ends where its first empty line does,
// however the bytes were cut, and only GET of the two paths is answered.
#include "serve/scrape_request.h"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto end = foreload::head_end(bytes);
  if (end && (*end > size || bytes[*end - 1] != '\n' || foreload::head_end(bytes.substr(0, *end - 1)))) std::abort();
  const std::size_t cut = size > 0 ? data[0] % size : 0;
  if (!foreload::head_end(bytes.substr(0, cut)) && foreload::head_end(bytes, cut) != end) std::abort();
  const foreload::Asked asked = foreload::asked_for(bytes);
  if (asked == foreload::Asked::kMetrics && !bytes.starts_with("GET /metrics")) std::abort();
  if (asked == foreload::Asked::kHealth && !bytes.starts_with("GET /healthz")) std::abort();
  return 0;
}
