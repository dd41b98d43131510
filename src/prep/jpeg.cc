// How a box is cut out of a JPEG so that its pixels equal those of a full decode:
// - a crop-addressable file is cut first: libjpeg sees only the runs of MCUs that cover the box (jpeg_splice.h).
//   Such a file is never given to libjpeg as a whole, unless the box is most of it;
// - rows above the box are skipped from row 0 on, which libjpeg does without reconstructing them;
// - what another host has cut already is a file like that, whose pixels are elsewhere in the picture (jpeg_cut.h);
// - columns are cut at whole MCUs, as cover_columns() says; but from column 0 on where libjpeg smooths, because it
//   would take the left edge of the cut for that of the picture (rows and the right edge it handles well);
// - the rest of the file is never read;
// - codes are read by our own decoder (jpeg_entropy.h), or by libjpeg's, from the beginning, when ours gives up.
//
// What counts as a bad sample follows Pillow: a file without its end is refused even if the box is complete;
// data that is wrong inside is decoded, and remembered as damaged.
#include "prep/jpeg.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "prep/jpeg_bytes.h"
#include "prep/jpeg_cut.h"
#include "prep/jpeg_entropy.h"
#include "prep/jpeg_frame.h"
#include "prep/jpeg_layout.h"
#include "prep/jpeg_library.h"
#include "prep/jpeg_markers.h"
#include "prep/jpeg_splice.h"
#include "prep/rows.h"

namespace foreload {

namespace {

// libjpeg-turbo writes aligned rows past the cache, from where the next stage would have to fetch them back.
constexpr std::size_t kMisalignment = 4;

Error not_enough() {
  return {Code::kBadSample, "the part of the file that was read is not enough to decode it"};
}

class JpegDecoder final : public ImageDecoder {
 public:
  explicit JpegDecoder(bool is_plain) : is_plain_(is_plain) {}
  void hint_rows(const RowHint& hint) override { hint_ = hint; }
  Result<Dimensions> open(std::span<const std::byte> bytes, const Limits& limits) override;
  // libjpeg crops columns of a scaled picture rightly for the usual samplings only.
  bool can_scale() const override { return frame_.has_usual_sampling(); }
  void set_scale(std::uint32_t eighths) override;
  DecodeMemory memory(const Box& wanted) const override;
  Status start(const Box& wanted, std::span<std::uint8_t> scratch) override;
  Result<const std::uint8_t*> next_row() override;
  void close() override { reader_.close(); }
  bool damaged() const override { return reader_.guard().warnings() > 0; }

 private:
  bool find_rows();
  Result<Dimensions> open_cut(const CutHint& hint);
  std::optional<Box> place_of(const Box& box) const;
  bool is_spliced(const JpegSplice& splice) const { return !rows_.empty() && !covers_most(layout_, splice); }
  bool can_be_cut(const JpegSplice& splice) const;
  McuRange columns_of(const Box& box, std::uint32_t width) const;
  McuRange widest_columns_of(const Box& box, std::uint32_t width) const;
  Bytes row_scratch(const Box& box) const;
  Bytes library_bytes() const;
  Result<Box> give_to_library(const Box& box, std::span<std::uint8_t> room);
  void start_at_row();
  Status start_again();
  void cmyk_to_rgb(std::uint8_t* pixels, std::size_t count) const;

  const bool is_plain_;
  bool is_ours_ = false;  // our decoder of the data is in place
  JpegReader reader_;
  JpegEntropy entropy_;
  std::span<const std::byte> bytes_;
  std::span<const std::byte> given_;  // to libjpeg: the same, or the splice
  Limits limits_;
  std::uint32_t eighths_ = 8;
  JpegFrame frame_;
  JpegLayout layout_;  // of a crop-addressable file
  RowHint hint_;       // for the next open()
  McuRange there_;     // rows of MCUs; of a partial file not all
  bool is_partial_ = false;
  std::optional<JpegCutPlace> cut_;  // the file is a cut, and all but the boxes of callers is its own
  bool is_hinted_ = false;           // the rows are somebody else's word
  std::vector<std::uint32_t> rows_;  // of a crop-addressable file, at most 32 KiB; else empty
  std::uint32_t width_ = 0;          // of the box
  McuRange columns_;                 // that libjpeg reconstructs
  std::uint32_t next_row_ = 0;       // of what libjpeg decodes
  JDIMENSION rows_read_ = 0;
  std::uint8_t* row_ = nullptr;
  std::size_t first_pixel_ = 0;  // of the box, in row_
};

Result<Dimensions> JpegDecoder::open(std::span<const std::byte> bytes, const Limits& limits) {
  close();
  reader_.guard().forget_warnings();
  bytes_ = bytes;
  limits_ = limits;
  eighths_ = 8;
  entropy_.forget();
  cut_.reset();
  if (hint_.cut) return open_cut(*std::exchange(hint_, {}).cut);
  if (find_rows()) {
    frame_ = JpegFrame::of(layout_);
    FORELOAD_TRY(check_pixels(frame_.size, limits));
    FORELOAD_TRY(frame_.check_length(bytes.size() - layout_.scan));
  } else if (is_partial_) {
    return not_enough();
  } else {
    FORELOAD_TRY(reader_.open(bytes_, limits_.scans));
    FORELOAD_ASSIGN(frame_, JpegFrame::of(reader_, limits));
    FORELOAD_TRY(frame_.check_data(reader_.rest(), limits));
  }
  return frame_.size;
}

// Whatever is wrong with it says nothing about the whole file.
Result<Dimensions> JpegDecoder::open_cut(const CutHint& hint) {
  if (!find_rows()) return not_enough();
  cut_ = place_jpeg_cut(layout_, hint.picture, hint.box);
  if (!cut_) return not_enough();
  frame_ = JpegFrame::of(layout_);
  FORELOAD_TRY(check_pixels(hint.picture, limits_));
  FORELOAD_TRY(frame_.check_length(bytes_.size() - layout_.scan));
  return hint.picture;
}

// Where a box of the picture is in the file. Nothing: it is not there.
std::optional<Box> JpegDecoder::place_of(const Box& box) const {
  if (!cut_) return box;
  if (!cut_->covers(box, eighths_)) return std::nullopt;
  return Box{box.x - cut_->x(eighths_), box.y - cut_->y(eighths_), box.width, box.height};
}

bool JpegDecoder::find_rows() {
  rows_.clear();
  const RowHint hint = std::exchange(hint_, {});
  is_partial_ = hint.is_partial();
  there_ = {hint.first, hint.end};
  const std::size_t known = hint.offsets.empty() ? 0 : hint.offsets[0];
  const std::size_t header = is_partial_ ? std::min(known, bytes_.size()) : bytes_.size();
  auto layout = parse_jpeg_layout(bytes_.first(header));
  if (!layout) return false;
  layout_ = *layout;
  // A copy: the hint may be a mapped file that somebody changes between the check and the use.
  if (hint.offsets.size() == std::size_t{layout_.mcu_rows} + 1) rows_.assign(hint.offsets.begin(), hint.offsets.end());
  is_hinted_ = could_be_jpeg_row_offsets(bytes_.size(), layout_, rows_);
  if (is_hinted_) return true;
  if (is_partial_ || !jpeg_row_offsets(bytes_, layout_, rows_)) rows_.clear();
  return !rows_.empty();
}

// Offsets of others are looked at where they are needed: so a partial file gives what the whole one does, or nothing.
bool JpegDecoder::can_be_cut(const JpegSplice& splice) const {
  if (!is_spliced(splice)) return false;
  if (is_partial_ && (splice.rows.first < there_.first || splice.rows.end > there_.end)) return false;
  return !is_hinted_ || are_jpeg_row_offsets(bytes_, layout_, rows_, splice.rows);
}

void JpegDecoder::set_scale(std::uint32_t eighths) {
  FORELOAD_CHECK(eighths >= 1 && eighths <= 8, "a picture can be decoded at 1/8 to 8/8");
  eighths_ = eighths;
}

// The columns that libjpeg is asked for, of a picture of that width.
McuRange JpegDecoder::columns_of(const Box& box, std::uint32_t width) const {
  const std::uint32_t mcu = frame_.mcu_width() / DCTSIZE * eighths_;
  const McuRange mcus = cover_columns({mcu, width, frame_.is_subsampled_x()}, box.x, box.width);
  return {mcus.first * mcu, std::min(mcus.end * mcu, width)};
}

// Whether scans are missing is known only when all have been read.
McuRange JpegDecoder::widest_columns_of(const Box& box, std::uint32_t width) const {
  const McuRange columns = columns_of(box, width);
  return {frame_.is_progressive ? 0 : columns.first, columns.end};
}

Bytes JpegDecoder::row_scratch(const Box& box) const {
  return row_bytes(widest_columns_of(box, scaled(frame_.size, eighths_).width).count()) + kMisalignment;
}

DecodeMemory JpegDecoder::memory(const Box& wanted) const {
  const auto box = place_of(wanted);
  if (!box) return {};
  DecodeMemory memory{row_scratch(*box), library_bytes()};
  if (rows_.empty()) return memory;
  const JpegSplice splice = plan_jpeg_splice(layout_, *box, eighths_);
  if (is_spliced(splice)) memory.scratch += jpeg_splice_bytes(layout_, splice, rows_);
  return memory;
}

// An upper bound of libjpeg's allocations: sample rows of an MCU row and its neighbours, one row group in full
// colour, tables; and for files of several scans the coefficients of the whole picture. At a smaller scale a
// component may be decoded to the size of the picture.
Bytes JpegDecoder::library_bytes() const {
  constexpr Bytes kTables = 96_KiB;
  constexpr Bytes kContextRows = DCTSIZE + 4;
  const Bytes mcus = (frame_.size.width + DCTSIZE * frame_.max_h - 1) / (DCTSIZE * frame_.max_h);
  Bytes rows = 0;
  for (const JpegSampling& part : frame_.parts()) {
    const Bytes across = mcus * DCTSIZE * (eighths_ < 8 ? frame_.max_h : part.h);
    const Bytes down = eighths_ < 8 ? frame_.max_v : part.v;
    rows += down * kContextRows * (across + 64) + frame_.max_v * (frame_.size.width + Bytes{64});
  }
  return kTables + rows + (frame_.has_scans ? frame_.coefficient_bytes() : 0);
}

Status JpegDecoder::start(const Box& wanted, std::span<std::uint8_t> scratch) {
  const auto box = place_of(wanted);
  if (!box) return not_enough();
  const Bytes row_room = row_scratch(*box);
  FORELOAD_CHECK(scratch.size() >= row_room, "memory() was asked");
  FORELOAD_ASSIGN(const Box inner, give_to_library(*box, scratch.subspan(row_room)));
  const std::uint32_t width = scaled({reader_.info().image_width, 0}, eighths_).width;
  const Bytes widest = row_bytes(widest_columns_of(inner, width).count()) + kMisalignment;
  FORELOAD_CHECK(widest <= row_room, "a splice is not cut elsewhere");
  columns_ = columns_of(inner, width);
  next_row_ = inner.y;
  if (!reader_.guard().run([this] { start_at_row(); })) {
    FORELOAD_TRY(start_again());
  }
  FORELOAD_CHECK(reader_.info().output_width == columns_.count(), "libjpeg cuts at the MCUs that were given");
  width_ = box->width;
  row_ = scratch.data() + kMisalignment;
  first_pixel_ = inner.x - columns_.first;
  std::memset(row_ + columns_.count() * kPixelBytes, 0, kRowSlack);
  return {};
}

// Opens the file in libjpeg, or the splice of it; returns where the box is in that.
Result<Box> JpegDecoder::give_to_library(const Box& box, std::span<std::uint8_t> room) {
  given_ = bytes_;
  if (rows_.empty()) return box;  // opened already
  const JpegSplice splice = plan_jpeg_splice(layout_, box, eighths_);
  if (can_be_cut(splice)) {
    const auto out = std::as_writable_bytes(room);
    const auto size = write_jpeg_splice(bytes_, layout_, splice, rows_, out);
    if (size) {
      given_ = out.first(*size);
      FORELOAD_TRY(reader_.open(given_, limits_.scans));
      return splice.box;
    }
  }
  if (is_partial_) return not_enough();
  FORELOAD_TRY(reader_.open(bytes_, limits_.scans));
  // Of rows that were found here, the end of the file was found, too.
  if (is_hinted_) FORELOAD_TRY(frame_.check_data(reader_.rest(), limits_));
  return box;
}

void JpegDecoder::start_at_row() {
  jpeg_decompress_struct& info = reader_.info();
  info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
  info.dct_method = JDCT_ISLOW;
  info.do_fancy_upsampling = TRUE;
  info.scale_num = eighths_;
  info.scale_denom = 8;
  jpeg_start_decompress(&info);
  if (frame_.is_progressive && reader_.is_smoothed()) columns_.first = 0;
  if (columns_.count() < info.output_width) {
    JDIMENSION first = columns_.first;
    JDIMENSION count = columns_.count();
    jpeg_crop_scanline(&info, &first, &count);
  }
  const std::uint32_t mcu_width = frame_.mcu_width() / DCTSIZE * eighths_;
  const std::uint32_t mcu_height = frame_.mcu_height() / DCTSIZE * eighths_;
  const McuRange mcus{columns_.first / mcu_width, parts_of(columns_.end, mcu_width)};
  is_ours_ = !is_plain_ && !entropy_.gave_up() && entropy_.take_over(info, mcus, next_row_ / mcu_height);
  if (next_row_ > 0) jpeg_skip_scanlines(&info, next_row_);
}

// libjpeg failed. When that was because our own decoder of its data gave up: once more from the beginning, without.
Status JpegDecoder::start_again() {
  if (!is_ours_ || !entropy_.gave_up()) return reader_.error();
  FORELOAD_TRY(reader_.open(given_, limits_.scans));
  if (!reader_.guard().run([this] { start_at_row(); })) return reader_.error();
  return {};
}

Result<const std::uint8_t*> JpegDecoder::next_row() {
  const auto read_row = [this] {
    return reader_.guard().run([this] { rows_read_ = jpeg_read_scanlines(&reader_.info(), &row_, 1); });
  };
  if (!read_row()) {
    FORELOAD_TRY(start_again());
    if (!read_row()) return reader_.error();
  }
  FORELOAD_CHECK(rows_read_ == 1, "our source never suspends");
  ++next_row_;
  std::uint8_t* pixels = row_ + first_pixel_ * kPixelBytes;
  if (frame_.components == 4) cmyk_to_rgb(pixels, width_);
  return static_cast<const std::uint8_t*>(pixels);
}

// Pillow takes every CMYK JPEG as inverted, as Adobe writes them, and then computes
// (255 - k)·(255 - c)/255 with its own rounding.
void JpegDecoder::cmyk_to_rgb(std::uint8_t* pixels, std::size_t count) const {
  for (std::size_t i = 0; i < count; ++i, pixels += kPixelBytes) {
    const int white = pixels[3];
    for (int channel = 0; channel < 3; ++channel) {
      const int ink = (255 - pixels[channel]) * white + 128;
      pixels[channel] = static_cast<std::uint8_t>(white - (((ink >> 8) + ink) >> 8));
    }
  }
}

}  // namespace

bool is_jpeg(std::span<const std::byte> bytes) {
  return bytes.size() >= 3 && bytes[0] == std::byte{0xff} && bytes[1] == std::byte{0xd8} && bytes[2] == std::byte{0xff};
}

Result<Dimensions> jpeg_dimensions(std::span<const std::byte> bytes) {
  return jpeg_frame_size(bytes);
}

std::unique_ptr<ImageDecoder> make_jpeg_decoder() {
  return std::make_unique<JpegDecoder>(false);
}

std::unique_ptr<ImageDecoder> make_plain_jpeg_decoder() {
  return std::make_unique<JpegDecoder>(true);
}

}  // namespace foreload
