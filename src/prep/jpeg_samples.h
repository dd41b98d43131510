// JPEG files made for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foreload {

struct JpegSpec {
  unsigned width = 64;
  unsigned height = 48;
  int components = 3;              // 1 gray, 3 colour, 4 CMYK; 2 makes a file that no one shows
  std::vector<unsigned> sampling;  // h, v of each component, one after the other; empty: all 1
  int quality = 85;
  bool progressive = false;
  bool arithmetic = false;
  bool one_scan_per_component = false;
  unsigned restart = 0;  // MCUs between restart markers
  std::uint64_t seed = 1;
};

// A picture of gradients, noise and edges.
std::vector<std::byte> make_jpeg(const JpegSpec& spec);

// One of each kind: all usual subsamplings and some unusual ones, gray, CMYK, progressive, arithmetic, restart markers,
// odd sizes.
std::vector<JpegSpec> jpeg_kinds();
// One of each kind that is crop-addressable as it is.
std::vector<JpegSpec> crop_addressable_kinds();
std::string to_text(const JpegSpec& spec);

// The file with one more segment behind the start of the image.
std::vector<std::byte> with_segment(std::vector<std::byte> jpeg, unsigned code, std::string_view body);
// Where a marker first stands; the size of the file when it does not.
std::size_t find_jpeg_marker(std::span<const std::byte> jpeg, unsigned code);

}  // namespace foreload
