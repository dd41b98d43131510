#include "prep/image.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "base/text.h"
#include "prep/jpeg.h"
#include "prep/png.h"
#include "prep/webp.h"

namespace foreload {

namespace {

std::string first_bytes(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes.first(std::min<std::size_t>(bytes.size(), 4))) {
    text += fmt::format(" {:02x}", static_cast<unsigned>(byte));
  }
  return text;
}

}  // namespace

std::span<const ImageFormat> image_formats() {
  static constexpr std::array kFormats{
      ImageFormat{"JPEG", is_jpeg, jpeg_dimensions, make_jpeg_decoder},
      ImageFormat{"PNG", is_png, png_dimensions, make_png_decoder},
      ImageFormat{"WebP", is_webp, webp_dimensions, make_webp_decoder},
  };
  return kFormats;
}

Result<const ImageFormat*> image_format_of(std::span<const std::byte> bytes) {
  if (bytes.empty()) return Error{Code::kBadSample, "the sample is empty (0 bytes)"};
  std::string names;
  for (const auto& format : image_formats()) {
    if (format.matches(bytes)) return &format;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
  }
  return Error{Code::kBadSample,
               fmt::format("not a known image format: begins with{}; known are {}", first_bytes(bytes), names)};
}

Status check_pixels(Dimensions size, const Limits& limits) {
  const std::uint64_t pixels = std::uint64_t{size.width} * size.height;
  if (pixels == 0) return Error{Code::kBadSample, fmt::format("{}x{} pixels", size.width, size.height)};
  if (pixels <= limits.pixels) return {};
  return Error{Code::kBadSample, fmt::format("{}x{} are {} pixels, more than the limit of {}", size.width, size.height,
                                             format_count(pixels), format_count(limits.pixels))};
}

}  // namespace foreload
