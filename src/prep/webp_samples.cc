#include "prep/webp_samples.h"

#include <webp/encode.h>

#include "base/check.h"
#include "base/random.h"

namespace foreload {

namespace {

// Gradients with some noise, and a hole in the alpha.
std::vector<std::uint8_t> rgba_of(const WebpSpec& spec) {
  std::vector<std::uint8_t> pixels;
  KeyedRandom random(spec.seed, 0, 0, 0);
  for (unsigned y = 0; y < spec.height; ++y) {
    for (unsigned x = 0; x < spec.width; ++x) {
      const auto noise = static_cast<unsigned>(random.below(32));
      for (const unsigned value : {5 * x + noise, 3 * y + 2 * noise, (x ^ y) * 4}) {
        pixels.push_back(static_cast<std::uint8_t>(value));
      }
      const bool is_hole = x > spec.width / 3 && y > spec.height / 3;
      pixels.push_back(spec.alpha ? static_cast<std::uint8_t>(is_hole ? x * 7 : 255) : 255);
    }
  }
  return pixels;
}

}  // namespace

std::vector<std::byte> make_webp(const WebpSpec& spec) {
  WebPConfig config;
  WebPPicture picture;
  FORELOAD_CHECK(WebPConfigInit(&config) != 0 && WebPPictureInit(&picture) != 0, "libwebp fits its header");
  config.lossless = spec.lossless ? 1 : 0;
  config.quality = spec.quality;
  config.filter_type = spec.simple_filter ? 0 : 1;
  config.exact = 1;
  picture.use_argb = 1;
  picture.width = static_cast<int>(spec.width);
  picture.height = static_cast<int>(spec.height);
  const auto pixels = rgba_of(spec);
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &writer;
  const int stride = picture.width * 4;
  const bool imported = spec.alpha ? WebPPictureImportRGBA(&picture, pixels.data(), stride) != 0
                                   : WebPPictureImportRGBX(&picture, pixels.data(), stride) != 0;
  FORELOAD_CHECK(imported && WebPEncode(&config, &picture) != 0, "the picture can be encoded");
  const auto* data = reinterpret_cast<const std::byte*>(writer.mem);
  std::vector<std::byte> file(data, data + writer.size);
  WebPPictureFree(&picture);
  WebPMemoryWriterClear(&writer);
  return file;
}

std::vector<WebpSpec> webp_kinds() {
  std::vector<WebpSpec> kinds;
  for (const auto& [width, height] : {std::pair{131u, 97u}, {64u, 48u}, {17u, 50u}, {1u, 1u}, {2u, 3u}}) {
    for (const bool alpha : {false, true}) {
      for (const bool simple : {false, true}) {
        for (const float quality : {5.f, 60.f, 95.f}) kinds.push_back({width, height, false, alpha, simple, quality});
      }
      kinds.push_back({width, height, true, alpha});
    }
  }
  return kinds;
}

}  // namespace foreload
