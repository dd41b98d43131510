#include "record/shrink.h"

#include <algorithm>

#include "prep/chain.h"
#include "prep/jpeg_encode.h"

namespace foreload {

namespace {

constexpr std::size_t kChannels = 3;

bool is_gray(std::span<const std::uint8_t> pixels) {
  for (std::size_t i = 0; i + 2 < pixels.size(); i += kChannels) {
    if (pixels[i] != pixels[i + 1] || pixels[i] != pixels[i + 2]) return false;
  }
  return true;
}

// The first of every three values, in place.
void keep_first_channel(std::vector<std::uint8_t>& pixels) {
  for (std::size_t i = 0; i < pixels.size() / kChannels; ++i) pixels[i] = pixels[kChannels * i];
}

// The pixels, the coefficients that the encoder keeps for its second pass, and the file, for which room is doubled.
Bytes encoding_memory(Dimensions size) {
  return 16 * Bytes{size.width} * size.height + 1_MiB;
}

}  // namespace

Dimensions shrunk_size(Dimensions size, std::uint32_t max_side) {
  const std::uint64_t longer = std::max(size.width, size.height);
  if (longer <= max_side) return size;
  const auto scaled = [&](std::uint64_t side) {
    return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (side * max_side + longer / 2) / longer));
  };
  return {scaled(size.width), scaled(size.height)};
}

Result<std::vector<std::byte>> shrink_image(std::span<const std::byte> image, const Shrinking& how,
                                            const std::function<Status(Bytes)>& take) {
  const Dimensions to = how.to;
  ChainOptions program;
  program.transforms = {resize(to.height, to.width)};
  program.dtype = DType::kU8;
  program.layout = Layout::kNhwc;
  program.limits = how.limits;
  FORELOAD_ASSIGN(const Chain chain, Chain::compile(program));
  ChainRunner runner(chain);
  FORELOAD_ASSIGN(const Bytes decoding, runner.begin(image, {}));
  FORELOAD_TRY(take(decoding + encoding_memory(to)));
  std::vector<std::uint8_t> pixels(kChannels * to.width * to.height);
  FORELOAD_TRY(runner.finish(std::as_writable_bytes(std::span(pixels))));
  JpegStyle style;
  style.quality = how.quality;
  style.colour = is_gray(pixels) ? JpegColour::kGray : JpegColour::kRgb;
  if (style.colour == JpegColour::kGray) {
    keep_first_channel(pixels);
  } else {
    style.h_sampling = style.v_sampling = 2;
  }
  std::vector<const std::uint8_t*> rows;
  for (std::size_t y = 0; y < to.height; ++y) rows.push_back(pixels.data() + y * to.width * channels(style.colour));
  return encode_jpeg(rows, to.width, style);
}

}  // namespace foreload
