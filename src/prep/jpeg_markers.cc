// A marker is 0xff and a code. Most begin a segment with a two-byte length; restart markers and the image's
// start and end stand alone. Inside a scan's data 0xff is followed by 0 (a data byte), a restart marker, or
// the next marker of the file.
#include "prep/jpeg_markers.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace foreload {

namespace {

enum : unsigned { kTem = 0x01, kRst0 = 0xd0, kRst7 = 0xd7, kSoi = 0xd8, kEoi = 0xd9, kSos = 0xda };

unsigned at(std::span<const std::byte> bytes, std::size_t i) {
  return static_cast<unsigned>(bytes[i]);
}

unsigned u16(std::span<const std::byte> bytes, std::size_t i) {
  return at(bytes, i) << 8 | at(bytes, i + 1);
}

bool stands_alone(unsigned code) {
  return code == kTem || (code >= kRst0 && code <= kSoi);
}

bool is_frame(unsigned code) {
  return code >= 0xc0 && code <= 0xcf && code != 0xc4 && code != 0xc8 && code != 0xcc;
}

struct Marker {
  unsigned code;
  std::size_t after;  // the place behind the code
};

// Skips data and fill bytes.
std::optional<Marker> next_marker(std::span<const std::byte> bytes, std::size_t from) {
  while (from + 1 < bytes.size()) {
    const void* found = std::memchr(bytes.data() + from, 0xff, bytes.size() - from - 1);
    if (!found) return std::nullopt;
    from = static_cast<std::size_t>(static_cast<const std::byte*>(found) - bytes.data()) + 1;
    const unsigned code = at(bytes, from);
    if (code != 0 && code != 0xff) return Marker{code, from + 1};
  }
  return std::nullopt;
}

// The place behind a marker and its segment.
std::size_t after(std::span<const std::byte> bytes, const Marker& marker) {
  if (stands_alone(marker.code)) return marker.after;
  const std::size_t left = bytes.size() - marker.after;
  if (left < 2) return bytes.size();
  return marker.after + std::min<std::size_t>(u16(bytes, marker.after), left);
}

}  // namespace

Result<Dimensions> jpeg_frame_size(std::span<const std::byte> bytes) {
  constexpr std::size_t kFrameBytes = 7;  // length, precision, height, width
  auto marker = next_marker(bytes, 0);
  while (marker && marker->code != kSos && marker->code != kEoi) {
    if (is_frame(marker->code) && bytes.size() - marker->after >= kFrameBytes) {
      const Dimensions size{u16(bytes, marker->after + 5), u16(bytes, marker->after + 3)};
      if (size.width > 0 && size.height > 0) return size;
      return Error{Code::kBadSample, "the JPEG header has no size"};
    }
    marker = next_marker(bytes, after(bytes, *marker));
  }
  return Error{Code::kBadSample, "a JPEG without a complete frame header"};
}

JpegScans count_jpeg_scans(std::span<const std::byte> data, std::uint32_t most) {
  JpegScans scans{1, false};
  for (auto marker = next_marker(data, 0); marker; marker = next_marker(data, after(data, *marker))) {
    if (marker->code == kEoi) return {scans.count, true};
    if (marker->code == kSos && ++scans.count > most) break;
  }
  return scans;
}

bool has_jpeg_end(std::span<const std::byte> data) {
  for (std::size_t i = data.size(); i >= 2; --i) {
    if (at(data, i - 1) == kEoi && at(data, i - 2) == 0xff) return true;
  }
  return false;
}

}  // namespace foreload
