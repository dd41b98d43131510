// Listings and errors of S3 over arbitrary bytes: whatever is accepted obeys the bounds, and reading it again gives the
// same.
#include "store/s3_list.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "store/url.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto error = foreload::parse_s3_error(text); error && error->code.empty()) std::abort();
  const auto page = foreload::parse_list_page(text);
  if (!page.ok()) return 0;
  if (page->objects.size() > foreload::kMostKeysInPage) std::abort();
  for (const foreload::ListedObject& object : page->objects) {
    if (object.key.empty() || object.key.size() > foreload::kLongestKey) std::abort();
    if (foreload::percent_decode(foreload::percent_encode(object.key, true)) != object.key) std::abort();
  }
  if (foreload::parse_list_page(text)->objects.size() != page->objects.size()) std::abort();
  return 0;
}
