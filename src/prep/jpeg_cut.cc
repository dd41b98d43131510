#include "prep/jpeg_cut.h"

#include "prep/jpeg_bytes.h"
#include "prep/jpeg_frame.h"

namespace foreload {
namespace {

bool is_equal(Dimensions a, Dimensions b) {
  return a.width == b.width && a.height == b.height;
}

bool is_within(McuRange inner, McuRange outer) {
  return inner.first >= outer.first && inner.end <= outer.end;
}

bool lies_in(const Box& box, Dimensions picture) {
  const auto side = [](std::uint64_t first, std::uint64_t length, std::uint64_t whole) {
    return length > 0 && first + length <= whole;
  };
  return side(box.x, box.width, picture.width) && side(box.y, box.height, picture.height);
}

}  // namespace

std::optional<std::vector<std::byte>> cut_jpeg(std::span<const std::byte> jpeg, Dimensions picture, const Box& box) {
  const auto layout = parse_jpeg_layout(jpeg);
  if (!layout || !is_equal(layout->size, picture)) return std::nullopt;
  const JpegSplice splice = plan_jpeg_splice(*layout, box, 8);
  if (covers_most(*layout, splice)) return std::nullopt;
  if (!JpegFrame::of(*layout).check_length(jpeg.size() - layout->scan)) return std::nullopt;
  std::vector<std::uint32_t> rows;
  if (!jpeg_row_offsets(jpeg, *layout, rows)) return std::nullopt;
  std::vector<std::byte> out(jpeg_splice_bytes(*layout, splice, rows));
  const auto size = write_jpeg_splice(jpeg, *layout, splice, rows, out);
  if (!size) return std::nullopt;
  out.resize(*size);
  return out;
}

std::optional<JpegCutPlace> place_jpeg_cut(const JpegLayout& cut, Dimensions picture, const Box& box) {
  if (!lies_in(box, picture)) return std::nullopt;
  JpegCutPlace place{.whole = cut, .splice = {}};
  place.whole.size = picture;
  place.whole.mcus_per_row = parts_of(picture.width, cut.mcu_width);
  place.whole.mcu_rows = parts_of(picture.height, cut.mcu_height);
  if (place.whole.mcus_per_row % cut.interval != 0) return std::nullopt;
  place.splice = plan_jpeg_splice(place.whole, box, 8);
  if (!is_equal(place.splice.size, cut.size)) return std::nullopt;
  return place;
}

bool JpegCutPlace::covers(const Box& box, std::uint32_t eighths) const {
  const JpegSplice needed = plan_jpeg_splice(whole, box, eighths);
  return is_within(needed.runs, splice.runs) && is_within(needed.rows, splice.rows);
}

}  // namespace foreload
