// WebP files made for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace foreload {

struct WebpSpec {
  unsigned width = 40;
  unsigned height = 30;
  bool lossless = false;
  bool alpha = false;
  bool simple_filter = false;  // of lossy files
  float quality = 60;
  std::uint64_t seed = 1;
};

std::vector<std::byte> make_webp(const WebpSpec& spec);
// Lossy with both loop filters, lossless, each with and without alpha.
std::vector<WebpSpec> webp_kinds();

}  // namespace foreload
