// The markers of a JPEG file, read without a decoder: size, number of scans, whether the file is complete.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "foreload/result.h"
#include "foreload/source.h"

namespace foreload {

enum JpegCode : unsigned {
  kJpegTem = 0x01,
  kJpegSof0 = 0xc0,
  kJpegSof1 = 0xc1,
  kJpegDht = 0xc4,
  kJpegRst0 = 0xd0,
  kJpegSoi = 0xd8,
  kJpegEoi = 0xd9,
  kJpegSos = 0xda,
  kJpegDqt = 0xdb,
  kJpegDri = 0xdd,
  kJpegApp0 = 0xe0,
  kJpegApp15 = 0xef,
  kJpegCom = 0xfe,
};

struct JpegMarker {
  unsigned code;
  std::size_t after;  // the place behind the code; the marker itself is the two bytes before it
};

// Finds the markers at or after `from`, one after the other; data and fill bytes between them are skipped. Quick:
// a scan's data is full of 0xff with a 0 behind, where a search for 0xff would stop every hundred bytes.
class JpegMarkerScan {
 public:
  JpegMarkerScan(std::span<const std::byte> bytes, std::size_t from) : bytes_(bytes), next_block_(from) {}

  std::optional<JpegMarker> next() {
    if (found_ == 0 && !refill()) return std::nullopt;
    const std::size_t after = block_ + static_cast<std::size_t>(std::countr_zero(found_)) + 2;
    found_ &= found_ - 1;
    return JpegMarker{static_cast<unsigned>(bytes_[after - 1]), after};
  }

 private:
  bool refill();

  std::span<const std::byte> bytes_;
  std::size_t block_ = 0;       // 64 places
  std::size_t next_block_ = 0;  // where nothing was looked at yet
  std::uint64_t found_ = 0;     // bit i: a marker at block_ + i that was not returned yet
};

// The first of them.
std::optional<JpegMarker> next_jpeg_marker(std::span<const std::byte> bytes, std::size_t from);

// A marker of the header, with the segment that it begins.
struct JpegSegment {
  unsigned code = 0;
  std::size_t begin = 0;            // of the marker, without fill bytes
  std::span<const std::byte> body;  // without marker and length

  std::size_t end() const { return begin + 4 + body.size(); }
};

// The segment at `place`, or behind fill bytes there. Nothing when there is none, or it does not fit in `bytes`.
std::optional<JpegSegment> jpeg_segment_at(std::span<const std::byte> bytes, std::size_t place);

struct JpegScans {
  std::uint32_t count = 0;
  bool complete = false;  // the end-of-image marker was found
};

// Width and height of the first frame header. kBadSample when there is none.
Result<Dimensions> jpeg_frame_size(std::span<const std::byte> bytes);

// Counts the scans of a file from `data`, the first byte of its first scan's data, on. Stops at most + 1.
JpegScans count_jpeg_scans(std::span<const std::byte> data, std::uint32_t most);

// Whether `data` contains an end-of-image marker. Looks from the end: quick when the file is complete.
bool has_jpeg_end(std::span<const std::byte> data);

}  // namespace foreload
