// libwebp decodes the box at once into scratch, as RGBA without premultiplication: the colours that Pillow sees. A
// lossy picture has its colours at half resolution, and the fancy upsampler repeats the outermost ones at the edge of
// what it decodes; so the box is widened to even places with a margin, of which next_row() shows the inner part.
//
// What libwebp allocates: a few macroblock rows for lossy data. For lossless data and for alpha 4 bytes per pixel of
// the whole picture, the tile images of the transforms (at most 3/4 byte per pixel), and tables for every group of
// prefix codes, of which there are 1 to 65,536. open() reads the data up to that number (webp_groups.h), so the
// announced memory is an upper bound of what a file takes, whoever made it; where the data is broken before, libwebp
// stops there.
#include "prep/webp.h"

#include <fmt/format.h>
#include <webp/decode.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "prep/rows.h"
#include "prep/webp_groups.h"

namespace foreload {

namespace {

constexpr std::uint32_t kMargin = 2;
constexpr Bytes kCodeGroupBytes = 21'000;  // five tables with the largest colour cache, and their pointers

enum WebpFormat { kMixed = 0, kLossy = 1, kLossless = 2 };  // as of WebPBitstreamFeatures::format

const std::uint8_t* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

const char* reason(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return "the data ends early";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "it uses a feature that libwebp does not know";
    case VP8_STATUS_BITSTREAM_ERROR:
      return "the data is damaged";
    default:
      return "libwebp refuses it";
  }
}

Result<WebPBitstreamFeatures> read_features(std::span<const std::byte> bytes) {
  WebPBitstreamFeatures features{};
  const VP8StatusCode status = WebPGetFeatures(raw(bytes), bytes.size(), &features);
  if (status == VP8_STATUS_OUT_OF_MEMORY) return Error{Code::kNoMemory, "WebP: libwebp could not allocate a header"};
  if (status != VP8_STATUS_OK) return Error{Code::kBadSample, fmt::format("WebP: {}", reason(status))};
  if (features.width <= 0 || features.height <= 0) return Error{Code::kBadSample, "WebP: the header has no size"};
  return features;
}

Dimensions size_of(const WebPBitstreamFeatures& features) {
  return {static_cast<std::uint32_t>(features.width), static_cast<std::uint32_t>(features.height)};
}

// From `first` to `end`, widened to even places and a margin; not beyond `limit`.
Interval widen(std::int64_t first, std::int64_t end, std::int64_t limit) {
  const std::int64_t from = std::max<std::int64_t>(0, first / 2 * 2 - kMargin);
  return {from, std::min(limit, (end + 1) / 2 * 2 + kMargin)};
}

class WebpDecoder final : public ImageDecoder {
 public:
  Result<Dimensions> open(std::span<const std::byte> bytes, const Limits& limits) override;
  DecodeMemory memory(const Box& box) const override;
  Status start(const Box& box, std::span<std::uint8_t> scratch) override;
  Result<const std::uint8_t*> next_row() override;
  void close() override {}
  bool damaged() const override { return false; }

 private:
  Box decoded_box(const Box& box) const;

  std::span<const std::byte> bytes_;
  WebPBitstreamFeatures features_{};
  Bytes groups_ = 0;  // of prefix codes
  const std::uint8_t* next_ = nullptr;
  std::size_t stride_ = 0;
};

Result<Dimensions> WebpDecoder::open(std::span<const std::byte> bytes, const Limits& limits) {
  FORELOAD_ASSIGN(features_, read_features(bytes));
  FORELOAD_TRY(check_pixels(size_of(features_), limits));
  if (features_.has_animation != 0 || features_.format == kMixed) {
    return Error{Code::kBadSample, "WebP: it is an animation; save the wanted picture as a file of its own"};
  }
  bytes_ = bytes;
  groups_ = 0;
  if (features_.format == kLossless || features_.has_alpha != 0) {
    groups_ = count_webp_groups(bytes, size_of(features_)).value_or(0);
  }
  return size_of(features_);
}

Box WebpDecoder::decoded_box(const Box& box) const {
  if (features_.format == kLossless) return box;
  const Interval x = widen(box.x, std::int64_t{box.x} + box.width, features_.width);
  const Interval y = widen(box.y, std::int64_t{box.y} + box.height, features_.height);
  return {static_cast<std::uint32_t>(x.first), static_cast<std::uint32_t>(y.first),
          static_cast<std::uint32_t>(x.size()), static_cast<std::uint32_t>(y.size())};
}

DecodeMemory WebpDecoder::memory(const Box& box) const {
  constexpr Bytes kDecoder = 64_KiB;
  constexpr Bytes kMacroblockColumn = 4_KiB;  // coefficients, modes, filter strengths and up to five cached rows
  constexpr Bytes kCachedRows = 17;           // of a lossless picture
  constexpr Bytes kGroupNumbers = 256_KiB;    // when groups are renumbered
  constexpr Bytes kTransformGroups = 1;       // of the tile image that is being decoded
  const Dimensions size = size_of(features_);
  const Box decoded = decoded_box(box);
  Bytes library = kDecoder;
  if (features_.format != kLossless) library += (size.width + 31) / 16 * kMacroblockColumn;
  if (features_.format == kLossless || features_.has_alpha != 0) {
    const Bytes pixels = Bytes{size.width} * size.height;
    const Bytes alpha = features_.format == kLossless ? 0 : pixels;
    library += 4 * (pixels + kCachedRows * size.width) + alpha + pixels + kGroupNumbers;
    library += (groups_ + kTransformGroups) * kCodeGroupBytes;
  }
  return {Bytes{decoded.width} * decoded.height * kPixelBytes + kRowSlack, library};
}

Status WebpDecoder::start(const Box& box, std::span<std::uint8_t> scratch) {
  const Box decoded = decoded_box(box);
  stride_ = std::size_t{decoded.width} * kPixelBytes;
  const std::size_t room = stride_ * decoded.height;
  FORELOAD_CHECK(scratch.size() >= room + kRowSlack, "memory() was asked");
  std::memset(scratch.data() + room, 0, kRowSlack);
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return Error{Code::kInvalid, "libwebp has another version than its header"};
  config.options.use_cropping = 1;
  config.options.crop_left = static_cast<int>(decoded.x);
  config.options.crop_top = static_cast<int>(decoded.y);
  config.options.crop_width = static_cast<int>(decoded.width);
  config.options.crop_height = static_cast<int>(decoded.height);
  config.output.colorspace = MODE_RGBA;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {scratch.data(), static_cast<int>(stride_), room};
  const VP8StatusCode status = WebPDecode(raw(bytes_), bytes_.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status == VP8_STATUS_OUT_OF_MEMORY) {
    return Error{Code::kNoMemory,
                 fmt::format("WebP of {}x{} pixels: libwebp found no memory; lower the memory budget or "
                             "use fewer threads, so that more is left for it",
                             features_.width, features_.height)};
  }
  if (status != VP8_STATUS_OK) return Error{Code::kBadSample, fmt::format("WebP: {}", reason(status))};
  next_ = scratch.data() + (box.y - decoded.y) * stride_ + (box.x - decoded.x) * kPixelBytes;
  return {};
}

Result<const std::uint8_t*> WebpDecoder::next_row() {
  const std::uint8_t* row = next_;
  next_ += stride_;
  return row;
}

}  // namespace

bool is_webp(std::span<const std::byte> bytes) {
  return bytes.size() >= 12 && std::memcmp(bytes.data(), "RIFF", 4) == 0 &&
         std::memcmp(bytes.data() + 8, "WEBP", 4) == 0;
}

Result<Dimensions> webp_dimensions(std::span<const std::byte> bytes) {
  FORELOAD_ASSIGN(const WebPBitstreamFeatures features, read_features(bytes));
  return size_of(features);
}

std::unique_ptr<ImageDecoder> make_webp_decoder() {
  return std::make_unique<WebpDecoder>();
}

}  // namespace foreload
