#include "prep/png_samples.h"

#include <png.h>

#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace foreload {

namespace {

void append(png_structp png, png_bytep data, std::size_t size) {
  auto& out = *static_cast<std::vector<std::byte>*>(png_get_io_ptr(png));
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  out.insert(out.end(), bytes, bytes + size);
}

void set_palette(png_structp png, png_infop info, const PngSpec& spec) {
  std::vector<png_color> colors(std::size_t{1} << spec.depth);
  for (std::size_t i = 0; i < colors.size(); ++i) {
    colors[i] = {static_cast<png_byte>(i * 37), static_cast<png_byte>(255 - i * 11), static_cast<png_byte>(i * i)};
  }
  png_set_PLTE(png, info, colors.data(), static_cast<int>(colors.size()));
}

}  // namespace

std::vector<std::byte> make_png(const PngSpec& spec) {
  std::vector<std::byte> out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  FORELOAD_CHECK(png && info, "libpng works");
  png_set_write_fn(png, &out, append, nullptr);
  png_set_IHDR(png, info, spec.width, spec.height, spec.depth, spec.type,
               spec.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (spec.type == PNG_COLOR_TYPE_PALETTE) set_palette(png, info, spec);
  png_write_info(png, info);
  const std::size_t row_size = png_get_rowbytes(png, info);
  std::vector<png_byte> pixels(row_size * spec.height);
  KeyedRandom random(spec.seed, 0, 0, 0);
  for (auto& byte : pixels) byte = static_cast<png_byte>(random.next_u32() >> 13);
  std::vector<png_bytep> rows;
  for (unsigned y = 0; y < spec.height; ++y) rows.push_back(pixels.data() + y * row_size);
  png_write_image(png, rows.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return out;
}

std::vector<PngSpec> png_kinds() {
  const std::vector<std::pair<int, std::vector<int>>> types = {
      {0, {1, 2, 4, 8, 16}}, {2, {8, 16}}, {3, {1, 2, 4, 8}}, {4, {8, 16}}, {6, {8, 16}}};
  std::vector<PngSpec> kinds;
  std::uint64_t seed = 1;
  for (const auto& [type, depths] : types) {
    for (const int depth : depths) {
      for (const bool interlaced : {false, true}) {
        kinds.push_back(
            {.width = 37, .height = 23, .depth = depth, .type = type, .interlaced = interlaced, .seed = ++seed});
      }
    }
  }
  kinds.push_back({.width = 1, .height = 1, .interlaced = true});
  return kinds;
}

}  // namespace foreload
