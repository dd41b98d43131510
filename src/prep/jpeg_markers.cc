// A marker is 0xff and a code. Most begin a segment with a two-byte length; restart markers and the image's
// start and end stand alone. Inside a scan's data 0xff is followed by 0 (a data byte), a restart marker, or
// the next marker of the file.
#include "prep/jpeg_markers.h"

#include <algorithm>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "prep/jpeg_bytes.h"

namespace foreload {

namespace {

bool stands_alone(unsigned code) {
  return code == kJpegTem || (code >= kJpegRst0 && code <= kJpegSoi);
}

bool is_frame(unsigned code) {
  return code >= 0xc0 && code <= 0xcf && code != 0xc4 && code != 0xc8 && code != 0xcc;
}

bool is_marker_at(std::span<const std::byte> bytes, std::size_t i) {
  return byte_at(bytes, i) == 0xff && byte_at(bytes, i + 1) != 0 && byte_at(bytes, i + 1) != 0xff;
}

// Every byte of a file passes here, and a file of many scans must be refused soon also in a program that TSan watches.
#if defined(__clang__)
#define FORELOAD_UNWATCHED __attribute__((no_sanitize("thread")))
#else
#define FORELOAD_UNWATCHED
#endif

#if defined(__SSE2__)
FORELOAD_UNWATCHED inline __m128i load(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

// Bit i: a marker stands at data[i]. Reads 65 bytes.
FORELOAD_UNWATCHED std::uint64_t markers_in(const std::byte* data) {
  const __m128i all = _mm_set1_epi8(-1);
  const __m128i none = _mm_setzero_si128();
  std::uint64_t found = 0;
  for (unsigned i = 0; i < 64; i += 16) {
    const __m128i code = load(data + i + 1);
    const __m128i is_data = _mm_or_si128(_mm_cmpeq_epi8(code, none), _mm_cmpeq_epi8(code, all));
    const int bits = _mm_movemask_epi8(_mm_andnot_si128(is_data, _mm_cmpeq_epi8(load(data + i), all)));
    found |= std::uint64_t{static_cast<unsigned>(bits)} << i;
  }
  return found;
}
#else
std::uint64_t markers_in(const std::byte* data) {
  std::uint64_t found = 0;
  for (unsigned i = 0; i < 64; ++i) found |= std::uint64_t{is_marker_at({data, 65}, i)} << i;
  return found;
}
#endif

// The place behind a marker and its segment.
std::size_t after(std::span<const std::byte> bytes, const JpegMarker& marker) {
  if (stands_alone(marker.code)) return marker.after;
  const std::size_t left = bytes.size() - marker.after;
  if (left < 2) return bytes.size();
  return marker.after + std::min<std::size_t>(u16_at(bytes, marker.after), left);
}

}  // namespace

bool JpegMarkerScan::refill() {
  while (next_block_ + 64 < bytes_.size()) {
    block_ = next_block_;
    next_block_ += 64;
    found_ = markers_in(bytes_.data() + block_);
    if (found_ != 0) return true;
  }
  block_ = next_block_;
  for (std::size_t i = block_; i + 1 < bytes_.size(); ++i) {
    if (is_marker_at(bytes_, i)) found_ |= std::uint64_t{1} << (i - block_);
  }
  next_block_ = std::max(block_, bytes_.size());
  return found_ != 0;
}

std::optional<JpegMarker> next_jpeg_marker(std::span<const std::byte> bytes, std::size_t from) {
  return JpegMarkerScan(bytes, from).next();
}

std::optional<JpegSegment> jpeg_segment_at(std::span<const std::byte> bytes, std::size_t place) {
  while (place + 1 < bytes.size() && byte_at(bytes, place) == 0xff && byte_at(bytes, place + 1) == 0xff) ++place;
  if (place + 4 > bytes.size() || byte_at(bytes, place) != 0xff) return std::nullopt;
  const unsigned code = byte_at(bytes, place + 1);
  const unsigned length = u16_at(bytes, place + 2);
  if (code == 0 || code == kJpegEoi || stands_alone(code)) return std::nullopt;
  if (length < 2 || bytes.size() - place - 2 < length) return std::nullopt;
  return JpegSegment{code, place, bytes.subspan(place + 4, length - 2)};
}

Result<Dimensions> jpeg_frame_size(std::span<const std::byte> bytes) {
  constexpr std::size_t kFrameBytes = 7;  // length, precision, height, width
  auto marker = next_jpeg_marker(bytes, 0);
  while (marker && marker->code != kJpegSos && marker->code != kJpegEoi) {
    if (is_frame(marker->code) && bytes.size() - marker->after >= kFrameBytes) {
      const Dimensions size{u16_at(bytes, marker->after + 5), u16_at(bytes, marker->after + 3)};
      if (size.width > 0 && size.height > 0) return size;
      return Error{Code::kBadSample, "the JPEG header has no size"};
    }
    marker = next_jpeg_marker(bytes, after(bytes, *marker));
  }
  return Error{Code::kBadSample, "a JPEG without a complete frame header"};
}

JpegScans count_jpeg_scans(std::span<const std::byte> data, std::uint32_t most) {
  JpegScans scans{1, false};
  for (auto marker = next_jpeg_marker(data, 0); marker; marker = next_jpeg_marker(data, after(data, *marker))) {
    if (marker->code == kJpegEoi) return {scans.count, true};
    if (marker->code == kJpegSos && ++scans.count > most) break;
  }
  return scans;
}

bool has_jpeg_end(std::span<const std::byte> data) {
  for (std::size_t i = data.size(); i >= 2; --i) {
    if (byte_at(data, i - 1) == kJpegEoi && byte_at(data, i - 2) == 0xff) return true;
  }
  return false;
}

}  // namespace foreload
