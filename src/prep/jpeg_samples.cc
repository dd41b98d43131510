#include "prep/jpeg_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include <jpeglib.h>

#include "base/random.h"

namespace foreload {

namespace {

std::vector<std::uint8_t> picture_row(const JpegSpec& spec, unsigned y, KeyedRandom& random) {
  const auto channels = static_cast<unsigned>(spec.components);
  std::vector<std::uint8_t> row(std::size_t{spec.width} * channels);
  for (unsigned x = 0; x < spec.width; ++x) {
    for (unsigned c = 0; c < channels; ++c) {
      const bool inside = (x / 13 + y / 11 + c) % 3 == 0;
      const unsigned smooth = x * (2 + c) + y * (3 - c % 3);
      const auto noise = static_cast<unsigned>(random.below(24));
      row[x * channels + c] = static_cast<std::uint8_t>(inside ? 220 - noise : smooth + noise);
    }
  }
  return row;
}

void set_sampling(jpeg_compress_struct& info, const JpegSpec& spec) {
  for (int i = 0; i < spec.components; ++i) {
    const auto at = static_cast<std::size_t>(i) * 2;
    info.comp_info[i].h_samp_factor = at < spec.sampling.size() ? static_cast<int>(spec.sampling[at]) : 1;
    info.comp_info[i].v_samp_factor = at < spec.sampling.size() ? static_cast<int>(spec.sampling[at + 1]) : 1;
  }
}

std::vector<std::vector<unsigned>> colour_samplings() {
  return {
      {},                  // 4:4:4
      {2, 1, 1, 1, 1, 1},  // 4:2:2
      {2, 2, 1, 1, 1, 1},  // 4:2:0
      {1, 2, 1, 1, 1, 1},  // 4:4:0
      {4, 1, 1, 1, 1, 1},  // 4:1:1
      {2, 2, 2, 1, 1, 2},
      {1, 1, 2, 2, 2, 2},
      {4, 1, 2, 1, 1, 1},
  };
}

// libjpeg guesses what is missing from the blocks around; of all brightness and colour, or of some.
std::vector<JpegSpec> kinds_with_missing_scans() {
  std::vector<JpegSpec> kinds;
  std::uint64_t seed = 500;
  for (const int scans : {1, 2, 5, 9}) {
    for (const auto& sampling : colour_samplings()) {
      kinds.push_back({.width = 130, .height = 83, .sampling = sampling, .progressive = true, .most_scans = scans});
      kinds.back().seed = ++seed;
    }
    kinds.push_back({.width = 35, .height = 70, .progressive = true, .most_scans = scans, .arithmetic = true});
  }
  for (const int components : {1, 4}) {
    kinds.push_back({.width = 77, .height = 40, .components = components, .progressive = true, .most_scans = 1});
    kinds.push_back({.width = 77, .height = 40, .components = components, .progressive = true, .most_scans = 3});
  }
  return kinds;
}

J_COLOR_SPACE color_space(int components) {
  switch (components) {
    case 1:
      return JCS_GRAYSCALE;
    case 3:
      return JCS_RGB;
    case 4:
      return JCS_CMYK;
    default:
      return JCS_UNKNOWN;
  }
}

}  // namespace

namespace {

void reverse_codes(JHUFF_TBL& table) {
  const int symbols = std::accumulate(std::begin(table.bits) + 1, std::end(table.bits), 0);
  std::reverse(table.huffval, table.huffval + symbols);
}

}  // namespace

std::vector<std::byte> make_jpeg(const JpegSpec& spec) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);  // a wrong spec ends the test program
  jpeg_create_compress(&info);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &data, &size);
  info.image_width = spec.width;
  info.image_height = spec.height;
  info.input_components = spec.components;
  info.in_color_space = color_space(spec.components);
  jpeg_set_defaults(&info);
  if (spec.components == 4) jpeg_set_colorspace(&info, spec.seed % 2 == 0 ? JCS_YCCK : JCS_CMYK);
  jpeg_set_quality(&info, spec.quality, TRUE);
  set_sampling(info, spec);
  for (int i = 0; spec.long_codes && i < 2; ++i) {
    reverse_codes(*info.dc_huff_tbl_ptrs[i]);
    reverse_codes(*info.ac_huff_tbl_ptrs[i]);
  }
  info.arith_code = spec.arithmetic;
  info.restart_interval = spec.restart;
  std::vector<jpeg_scan_info> scans;
  for (int i = 0; spec.one_scan_per_component && i < spec.components; ++i) scans.push_back({1, {i}, 0, 63, 0, 0});
  if (!scans.empty()) {
    info.scan_info = scans.data();
    info.num_scans = static_cast<int>(scans.size());
  }
  if (spec.progressive) jpeg_simple_progression(&info);
  if (spec.most_scans > 0) info.num_scans = std::min(info.num_scans, spec.most_scans);
  jpeg_start_compress(&info, TRUE);
  KeyedRandom random(spec.seed, 0, 0, 0);
  for (unsigned y = 0; y < spec.height; ++y) {
    auto row = picture_row(spec, y, random);
    JSAMPROW rows[1] = {row.data()};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> result(bytes, bytes + size);
  jpeg_destroy_compress(&info);
  std::free(data);
  return result;
}

std::vector<JpegSpec> jpeg_kinds() {
  const auto samplings = colour_samplings();
  std::vector<JpegSpec> kinds;
  std::uint64_t seed = 1;
  for (const auto& sampling : samplings) {
    kinds.push_back({.width = 97, .height = 61, .sampling = sampling, .seed = ++seed});
    kinds.push_back({.width = 130, .height = 83, .sampling = sampling, .progressive = true, .seed = ++seed});
    kinds.push_back({.width = 64, .height = 64, .sampling = sampling, .restart = 3, .seed = ++seed});
    kinds.push_back({.width = 33, .height = 18, .sampling = sampling, .one_scan_per_component = true, .seed = ++seed});
  }
  kinds.push_back({.width = 3, .height = 5, .sampling = samplings[2], .seed = ++seed});
  kinds.push_back({.width = 35, .height = 70, .sampling = samplings[2], .arithmetic = true, .seed = ++seed});
  for (const bool progressive : {false, true}) {
    kinds.push_back({.width = 77, .height = 40, .components = 1, .progressive = progressive, .seed = ++seed});
    kinds.push_back({.width = 50, .height = 41, .components = 1, .sampling = {2, 2}, .progressive = progressive});
    kinds.push_back({.width = 71, .height = 45, .components = 4, .progressive = progressive, .seed = 100});
    kinds.push_back({.width = 71, .height = 45, .components = 4, .progressive = progressive, .seed = 101});
  }
  kinds.push_back({.width = 60, .height = 45, .components = 4, .sampling = {2, 2, 1, 1, 1, 1, 2, 2}, .seed = 102});
  const auto unfinished = kinds_with_missing_scans();
  kinds.insert(kinds.end(), unfinished.begin(), unfinished.end());
  return kinds;
}

// Rows of 93 pixels have 12, 6 or 3 MCUs.
std::vector<JpegSpec> crop_addressable_kinds() {
  std::vector<JpegSpec> kinds;
  std::uint64_t seed = 1000;
  for (const auto& sampling : colour_samplings()) {
    kinds.push_back({.width = 93, .height = 61, .sampling = sampling, .restart = 3, .seed = ++seed});
    kinds.push_back({.width = 93, .height = 64, .sampling = sampling, .restart = 1, .seed = ++seed});
    kinds.push_back({.width = 128, .height = 43, .sampling = sampling, .restart = 2, .seed = ++seed});
    kinds.push_back({.width = 67, .height = 51, .sampling = sampling, .restart = 1, .seed = ++seed});
  }
  kinds.push_back({.width = 93, .height = 61, .components = 1, .restart = 3, .seed = ++seed});
  kinds.push_back({.width = 65, .height = 61, .components = 1, .restart = 1, .seed = ++seed});
  kinds.push_back({.width = 93, .height = 61, .components = 1, .sampling = {2, 2}, .restart = 4, .seed = ++seed});
  return kinds;
}

std::size_t find_jpeg_marker(std::span<const std::byte> jpeg, unsigned code) {
  const std::byte marker[] = {std::byte{0xff}, static_cast<std::byte>(code)};
  const auto found = std::search(jpeg.begin(), jpeg.end(), std::begin(marker), std::end(marker));
  return static_cast<std::size_t>(found - jpeg.begin());
}

std::vector<std::uint32_t> find_jpeg_runs(std::span<const std::byte> jpeg) {
  std::size_t at = find_jpeg_marker(jpeg, 0xda);
  at += 2 + (static_cast<std::size_t>(jpeg[at + 2]) << 8 | static_cast<std::size_t>(jpeg[at + 3]));
  std::vector<std::uint32_t> runs{static_cast<std::uint32_t>(at)};
  for (; at + 1 < jpeg.size(); ++at) {
    const auto code = static_cast<unsigned>(jpeg[at + 1]);
    if (jpeg[at] != std::byte{0xff} || code < 0xd0 || code > 0xd9) continue;
    runs.push_back(static_cast<std::uint32_t>(code == 0xd9 ? at : at + 2));
    if (code == 0xd9) break;
  }
  return runs;
}

std::vector<std::byte> with_segment(std::vector<std::byte> jpeg, unsigned code, std::string_view body) {
  const std::size_t length = body.size() + 2;
  std::vector<std::byte> segment = {std::byte{0xff}, static_cast<std::byte>(code), static_cast<std::byte>(length >> 8),
                                    static_cast<std::byte>(length)};
  const auto bytes = std::as_bytes(std::span(body));
  segment.insert(segment.end(), bytes.begin(), bytes.end());
  jpeg.insert(jpeg.begin() + 2, segment.begin(), segment.end());
  return jpeg;
}

std::string to_text(const JpegSpec& spec) {
  return fmt::format(
      "{}x{}, {} components, sampling {}, progressive {} to scan {}, arithmetic {}, scans apart {}, restart {}, seed "
      "{}",
      spec.width, spec.height, spec.components, fmt::join(spec.sampling, " "), spec.progressive, spec.most_scans,
      spec.arithmetic, spec.one_scan_per_component, spec.restart, spec.seed);
}

}  // namespace foreload
