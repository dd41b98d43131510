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
  int most_scans = 0;  // a progressive file ends after so many, with its end-of-image marker; 0: none is missing
  bool arithmetic = false;
  bool one_scan_per_component = false;
  unsigned restart = 0;     // MCUs between restart markers
  bool long_codes = false;  // Huffman tables in which what is frequent has the longest codes
  std::uint64_t seed = 1;
};

// A picture of gradients, noise and edges.
std::vector<std::byte> make_jpeg(const JpegSpec& spec);

// One of each kind: all usual subsamplings and some unusual ones, gray, CMYK, progressive, arithmetic, restart markers,
// missing scans, odd sizes.
std::vector<JpegSpec> jpeg_kinds();
// One of each kind that is crop-addressable as it is.
std::vector<JpegSpec> crop_addressable_kinds();
std::string to_text(const JpegSpec& spec);

// The file with one more segment behind the start of the image.
std::vector<std::byte> with_segment(std::vector<std::byte> jpeg, unsigned code, std::string_view body);
// Where a marker first stands; the size of the file when it does not.
std::size_t find_jpeg_marker(std::span<const std::byte> jpeg, unsigned code);
// Where each run of a good file with one scan begins, and at last where the end-of-image marker begins.
std::vector<std::uint32_t> find_jpeg_runs(std::span<const std::byte> jpeg);

}  // namespace foreload
