// The header is walked segment by segment, strictly: no bytes between segments but fill bytes, no marker that we do
// not know. libjpeg may be more tolerant; a file that needs tolerance is simply not crop-addressable. Of a segment
// only what the layout needs is checked; tables are libjpeg's business.
//
//   SOI │ APPn DQT SOF0 DHT DRI … in any order │ SOS │ run RST0 run RST1 … run │ EOI │ anything
//                                                    ^ scan
#include "prep/jpeg_layout.h"

#include <algorithm>
#include <optional>

#include "prep/jpeg_bytes.h"
#include "prep/jpeg_markers.h"

namespace foreload {

namespace {

constexpr unsigned kMostBlocks = 10;  // of an MCU, by the standard

Error not_eligible(const char* reason) {
  return {Code::kInvalid, std::string("not a crop-addressable JPEG: ") + reason};
}

class HeaderParser {
 public:
  explicit HeaderParser(std::span<const std::byte> bytes) : bytes_(bytes) {}
  Result<JpegLayout> parse();

 private:
  Status segment(const JpegSegment& segment);
  Status frame(const JpegSegment& segment);
  Status restart_interval(const JpegSegment& segment);
  Status scan(const JpegSegment& segment);
  Status geometry();

  std::span<const std::byte> bytes_;
  JpegLayout layout_;
  std::array<unsigned, 3> ids_{};
};

Result<JpegLayout> HeaderParser::parse() {
  if (bytes_.size() < 2 || u16_at(bytes_, 0) != 0xffd8) return not_eligible("it does not begin as one");
  if (bytes_.size() > UINT32_MAX) return not_eligible("it is longer than 4 GiB");
  std::size_t place = 2;
  while (layout_.scan == 0) {
    const auto next = jpeg_segment_at(bytes_, place);
    if (!next) return not_eligible("its header is broken");
    FORELOAD_TRY(segment(*next));
    place = next->end();
  }
  FORELOAD_TRY(geometry());
  return layout_;
}

Status HeaderParser::segment(const JpegSegment& segment) {
  switch (segment.code) {
    case kJpegSof0:
    case kJpegSof1:
      return frame(segment);
    case kJpegDri:
      return restart_interval(segment);
    case kJpegSos:
      return scan(segment);
    case kJpegDht:
    case kJpegDqt:
    case kJpegCom:
      return {};
    default:
      if (segment.code >= kJpegApp0 && segment.code <= kJpegApp15) return {};
      return not_eligible("its header has a marker that is not baseline's");
  }
}

Status HeaderParser::frame(const JpegSegment& segment) {
  constexpr std::size_t kFixed = 6;  // precision, height, width, components
  if (layout_.components != 0) return not_eligible("it has two frame headers");
  const auto body = segment.body;
  if (body.size() < kFixed) return not_eligible("its frame header is cut off");
  if (byte_at(body, 0) != 8) return not_eligible("its samples do not have 8 bits");
  const unsigned count = byte_at(body, 5);
  if (count != 1 && count != 3) return not_eligible("it has neither 1 nor 3 components");
  if (body.size() != kFixed + std::size_t{3} * count) return not_eligible("its frame header has a wrong length");
  layout_.size = {u16_at(body, 3), u16_at(body, 1)};
  if (layout_.size.width == 0 || layout_.size.height == 0) return not_eligible("its header has no size");
  layout_.components = count;
  layout_.frame = static_cast<std::uint32_t>(segment.begin + 5);
  for (unsigned i = 0; i < count; ++i) {
    ids_[i] = byte_at(body, kFixed + i * 3);
    const unsigned factors = byte_at(body, kFixed + i * 3 + 1);
    layout_.sampling[i] = {static_cast<std::uint8_t>(factors >> 4), static_cast<std::uint8_t>(factors & 15)};
  }
  if (count == 3 && (ids_[0] == ids_[1] || ids_[1] == ids_[2] || ids_[0] == ids_[2])) {
    return not_eligible("two of its components have the same name");
  }
  return {};
}

Status HeaderParser::restart_interval(const JpegSegment& segment) {
  if (layout_.interval != 0) return not_eligible("its header sets the restart interval twice");
  if (segment.body.size() != 2) return not_eligible("its restart interval has a wrong length");
  layout_.interval = u16_at(segment.body, 0);
  if (layout_.interval == 0) return not_eligible("it has no restart markers");
  return {};
}

Status HeaderParser::scan(const JpegSegment& segment) {
  const unsigned count = layout_.components;
  const auto body = segment.body;
  if (count == 0) return not_eligible("a scan comes before the frame header");
  if (layout_.interval == 0) return not_eligible("it has no restart markers");
  if (body.empty() || byte_at(body, 0) != count) return not_eligible("its components are not all in one scan");
  if (body.size() != 4 + std::size_t{2} * count) return not_eligible("its scan header has a wrong length");
  for (unsigned i = 0; i < count && i < ids_.size(); ++i) {
    if (byte_at(body, 1 + i * 2) != ids_[i]) return not_eligible("its scan has other components than its frame");
  }
  const std::size_t progression = 1 + std::size_t{2} * count;
  if (byte_at(body, progression) != 0 || byte_at(body, progression + 1) != 63 || byte_at(body, progression + 2) != 0) {
    return not_eligible("its scan is a progressive one");
  }
  layout_.scan = static_cast<std::uint32_t>(segment.end());
  return {};
}

// An MCU of a scan with one component is one block, whatever its sampling factors say.
Status HeaderParser::geometry() {
  const auto used = std::span(layout_.sampling).first(layout_.components);
  unsigned wide = 1;
  unsigned high = 1;
  unsigned blocks = 0;
  for (const JpegSampling& part : used) {
    if (part.h < 1 || part.h > 4 || part.v < 1 || part.v > 4) return not_eligible("a sampling factor is not 1 to 4");
    blocks += unsigned{part.h} * part.v;
    wide = std::max<unsigned>(wide, part.h);
    high = std::max<unsigned>(high, part.v);
  }
  if (layout_.components > 1 && blocks > kMostBlocks) return not_eligible("its MCUs have more than 10 blocks");
  for (const JpegSampling& part : used) {
    if (wide % part.h != 0 || high % part.v != 0) return not_eligible("a sampling ratio is not a whole number");
    layout_.subsampled_x |= part.h < wide;
    layout_.subsampled_y |= part.v < high;
  }
  layout_.mcu_width = layout_.components == 1 ? 8 : 8 * wide;
  layout_.mcu_height = layout_.components == 1 ? 8 : 8 * high;
  layout_.mcus_per_row = parts_of(layout_.size.width, layout_.mcu_width);
  layout_.mcu_rows = parts_of(layout_.size.height, layout_.mcu_height);
  if (layout_.mcus_per_row % layout_.interval != 0) {
    return not_eligible("its restart interval does not divide its rows");
  }
  return {};
}

}  // namespace

Result<JpegLayout> parse_jpeg_layout(std::span<const std::byte> bytes) {
  HeaderParser parser(bytes);
  return parser.parse();
}

Status jpeg_row_offsets(std::span<const std::byte> bytes, const JpegLayout& layout,
                        std::vector<std::uint32_t>& offsets) {
  const std::uint32_t runs = layout.runs();
  JpegMarkerScan markers(bytes, layout.scan);
  offsets.assign(1, layout.scan);
  std::uint32_t next_row = layout.runs_per_row();
  for (std::uint32_t run = 1; run <= runs; ++run) {
    const auto marker = markers.next();
    if (!marker) return not_eligible("its data ends early");
    const unsigned expected = run == runs ? unsigned{kJpegEoi} : kJpegRst0 + (run - 1) % 8;
    if (marker->code != expected) return not_eligible("its restart markers are not complete and in order");
    if (run != next_row) continue;
    offsets.push_back(static_cast<std::uint32_t>(run == runs ? marker->after - 2 : marker->after));
    next_row += layout.runs_per_row();
  }
  return {};
}

bool could_be_jpeg_row_offsets(Bytes length, const JpegLayout& layout, std::span<const std::uint32_t> offsets) {
  if (offsets.size() != std::size_t{layout.mcu_rows} + 1 || offsets[0] != layout.scan) return false;
  for (std::uint32_t row = 1; row <= layout.mcu_rows; ++row) {
    const bool last = row == layout.mcu_rows;
    if (offsets[row] < std::size_t{offsets[row - 1]} + 2 * !last) return false;
  }
  return std::size_t{offsets[layout.mcu_rows]} + 2 <= length;
}

bool are_jpeg_row_offsets(std::span<const std::byte> bytes, const JpegLayout& layout,
                          std::span<const std::uint32_t> offsets, McuRange rows) {
  for (std::uint32_t row = std::max(rows.first, 1U); row <= rows.end; ++row) {
    const bool last = row == layout.mcu_rows;
    const std::size_t marker = last ? offsets[row] : std::size_t{offsets[row]} - 2;
    const unsigned expected = last ? unsigned{kJpegEoi} : kJpegRst0 + (row * layout.runs_per_row() - 1) % 8;
    if (u16_at(bytes, marker) != (0xff00 | expected)) return false;
  }
  return true;
}

}  // namespace foreload
