// Which MCUs a box needs: those that it touches. Fancy upsampling of a subsampled component looks one sample beyond
// the pixel it makes, so the first and last pixel of an MCU need the neighbour MCU; all others do not. One more trap:
// libjpeg replaces fancy upsampling by plain when a component has at most two columns, so that a cut must never be so
// narrow where the picture is not.
//
// At the right and bottom edge of the picture the small JPEG has the picture's odd size, elsewhere whole MCUs.
// Restart markers are numbered anew; fill bytes stay where they are.
#include "prep/jpeg_splice.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "prep/image.h"
#include "prep/jpeg_bytes.h"
#include "prep/jpeg_markers.h"

namespace foreload {

namespace {

// Appends to memory whose sufficiency was computed before; checked, because the file is untrusted.
class Output {
 public:
  explicit Output(std::span<std::byte> room) : room_(room) {}

  void copy(std::span<const std::byte> bytes) {
    FORELOAD_CHECK(bytes.size() <= room_.size() - size_, "jpeg_splice_bytes() was asked");
    std::memcpy(room_.data() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  void marker(unsigned code) {
    const std::byte bytes[2] = {std::byte{0xff}, static_cast<std::byte>(code)};
    copy(bytes);
  }
  void patch(std::size_t place, std::uint32_t value) {
    room_[place] = static_cast<std::byte>(value >> 8);
    room_[place + 1] = static_cast<std::byte>(value);
  }
  std::size_t size() const { return size_; }

 private:
  std::span<std::byte> room_;
  std::size_t size_ = 0;
};

bool is_needed(unsigned code) {
  const bool application = code >= kJpegApp0 && code <= kJpegApp15;
  const bool colour = code == kJpegApp0 || code == kJpegApp0 + 2 || code == kJpegApp0 + 14;
  return code != kJpegCom && (!application || colour);
}

void write_header(std::span<const std::byte> bytes, const JpegLayout& layout, Dimensions size, Output& out) {
  out.marker(kJpegSoi);
  std::size_t place = 2;
  while (place < layout.scan) {
    const auto segment = jpeg_segment_at(bytes, place);
    FORELOAD_CHECK(segment, "the header was parsed before");
    place = segment->end();
    if (!is_needed(segment->code)) continue;
    out.copy(bytes.subspan(segment->begin, place - segment->begin));
    if (segment->begin + 5 != layout.frame) continue;
    const std::size_t frame = out.size() - (place - layout.frame);
    out.patch(frame, size.height);
    out.patch(frame + 2, size.width);
  }
}

struct RowCopier {
  std::span<const std::byte> bytes;
  const JpegLayout& layout;
  McuRange runs;
  Output& out;
  std::uint32_t written = 0;

  // Copies the runs of a row that lies at first … end-1; false when its markers are wrong.
  bool copy(std::uint32_t row, std::size_t first, std::size_t end) {
    const std::uint32_t before = row * layout.runs_per_row();
    const bool is_last_row = row + 1 == layout.mcu_rows;
    const auto reach = bytes.first(is_last_row ? end + 2 : end);
    JpegMarkerScan markers(reach, first);
    std::size_t place = first;
    for (std::uint32_t run = 0; run < runs.end; ++run) {
      const auto marker = markers.next();
      const bool is_last = run + 1 == layout.runs_per_row();
      const unsigned expected = is_last && is_last_row ? unsigned{kJpegEoi} : kJpegRst0 + (before + run) % 8;
      if (!marker || marker->code != expected || (is_last && marker->after != reach.size())) return false;
      if (run >= runs.first) append(bytes.subspan(place, marker->after - 2 - place));
      place = marker->after;
    }
    return true;
  }

  void append(std::span<const std::byte> run) {
    if (written > 0) out.marker(kJpegRst0 + (written - 1) % 8);
    out.copy(run);
    ++written;
  }
};

// Pixels from the beginning of the first MCU to the end of the last, or of the picture.
std::uint32_t pixels_of(McuRange range, std::uint32_t size, std::uint32_t whole) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{range.end} * size, whole)) -
         range.first * size;
}

}  // namespace

McuRange cover_rows(const McuAxis& axis, std::uint32_t first, std::uint32_t length) {
  const std::uint32_t last = first + length - 1;
  McuRange mcus{first / axis.mcu, last / axis.mcu + 1};
  if (axis.subsampled && first % axis.mcu == 0 && mcus.first > 0) --mcus.first;
  if (axis.subsampled && last % axis.mcu == axis.mcu - 1 && last + 1 < axis.pixels) ++mcus.end;
  return {mcus.first / axis.together, parts_of(mcus.end, axis.together)};
}

McuRange cover_columns(const McuAxis& axis, std::uint32_t first, std::uint32_t length) {
  constexpr std::uint32_t kNarrow = 4;  // pixels: two columns of a component that has half of them
  McuRange range = cover_rows(axis, first, length);
  const std::uint32_t step = axis.mcu * axis.together;
  if (!axis.subsampled || pixels_of(range, step, axis.pixels) > kNarrow) return range;
  if (range.first > 0) {
    --range.first;
  } else if (range.end < parts_of(axis.pixels, step)) {
    ++range.end;
  }
  return range;
}

JpegSplice plan_jpeg_splice(const JpegLayout& layout, const Box& box, std::uint32_t eighths) {
  const Dimensions size = scaled(layout.size, eighths);
  const McuAxis x{layout.mcu_width / 8 * eighths, size.width, layout.subsampled_x, layout.interval};
  const McuAxis y{layout.mcu_height / 8 * eighths, size.height, layout.subsampled_y};
  JpegSplice splice;
  splice.runs = cover_columns(x, box.x, box.width);
  splice.rows = cover_rows(y, box.y, box.height);
  splice.size = {pixels_of(splice.runs, layout.mcu_width * layout.interval, layout.size.width),
                 pixels_of(splice.rows, layout.mcu_height, layout.size.height)};
  splice.box = {box.x - splice.runs.first * x.mcu * x.together, box.y - splice.rows.first * y.mcu, box.width,
                box.height};
  return splice;
}

bool covers_most(const JpegLayout& layout, const JpegSplice& splice) {
  const std::uint64_t covered = std::uint64_t{splice.runs.count()} * splice.rows.count();
  return covered * 8 > std::uint64_t{layout.runs()} * 7;
}

Bytes jpeg_splice_bytes(const JpegLayout& layout, const JpegSplice& splice, std::span<const std::uint32_t> rows) {
  return Bytes{layout.scan} + (rows[splice.rows.end] - rows[splice.rows.first]) + 4;
}

Result<std::size_t> write_jpeg_splice(std::span<const std::byte> bytes, const JpegLayout& layout,
                                      const JpegSplice& splice, std::span<const std::uint32_t> rows,
                                      std::span<std::byte> out) {
  Output output(out);
  write_header(bytes, layout, splice.size, output);
  RowCopier copier{bytes, layout, splice.runs, output};
  for (std::uint32_t row = splice.rows.first; row < splice.rows.end; ++row) {
    if (!copier.copy(row, rows[row], rows[row + 1])) {
      return Error{Code::kInvalid, "the restart markers are not where the row offsets say"};
    }
  }
  output.marker(kJpegEoi);
  return output.size();
}

}  // namespace foreload
