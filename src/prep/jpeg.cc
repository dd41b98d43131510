// How a box is cut out of a JPEG so that its pixels equal those of a full decode:
// - rows above the box are skipped from row 0 on, which libjpeg does without reconstructing them;
// - columns are cut at whole MCUs. Fancy upsampling treats the first and last decoded column as the edge of
//   the picture, so one more column than the box needs is decoded on each inner side and dropped. libjpeg
//   also falls back to plain upsampling when a cut is only a few columns wide: a cut is never narrower
//   than an MCU.
// - the rest of the file is never read.
//
// What counts as a bad sample follows Pillow: a file without its end is refused even if the box is complete;
// data that is wrong inside is decoded, and remembered as damaged.
#include "prep/jpeg.h"

#include <fmt/format.h>

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

#include <jerror.h>
#include <jpeglib.h>

#include "base/check.h"
#include "base/text.h"
#include "prep/jpeg_markers.h"
#include "prep/rows.h"

namespace foreload {

namespace {

constexpr std::size_t kBlockBytes = 64 * sizeof(JCOEF);
// libjpeg-turbo writes aligned rows past the cache, from where the next stage would have to fetch them back.
constexpr std::size_t kMisalignment = 4;

// The columns that libjpeg is asked for.
struct Columns {
  std::uint32_t first;
  std::uint32_t end;

  std::uint32_t count() const { return end - first; }
};

class JpegDecoder final : public ImageDecoder {
 public:
  JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  ~JpegDecoder() override;

  Result<Dimensions> open(std::span<const std::byte> bytes, const Limits& limits) override;
  DecodeMemory memory(const Box& box) const override;
  Status start(const Box& box, std::span<std::uint8_t> scratch) override;
  Result<const std::uint8_t*> next_row() override;
  void close() override;
  bool damaged() const override { return errors_.num_warnings > 0; }

 private:
  static JpegDecoder& of(j_common_ptr info) { return *static_cast<JpegDecoder*>(info->client_data); }
  static void on_error(j_common_ptr info);
  static void on_message(j_common_ptr info, int level);
  static void on_progress(j_common_ptr info);
  static boolean on_end_of_data(j_decompress_ptr info);
  static void on_skip(j_decompress_ptr info, long count);
  [[noreturn]] void fail(const char* reason);

  // Runs calls into libjpeg; false when it gave up, with the reason in message_. What `call` captures and
  // creates must not need destruction: libjpeg leaves by longjmp.
  template <typename Call>
  bool guarded(Call call) {
    if (setjmp(jump_) != 0) return false;
    call();
    return true;
  }
  Error error() const;

  void read_header();
  Status check_header(const Limits& limits) const;
  Status check_data(const Limits& limits) const;
  std::uint64_t blocks() const;
  std::uint32_t mcu_width() const;
  Columns columns_of(const Box& box) const;
  void start_at(const Columns& columns, std::uint32_t row);
  void cmyk_to_rgb(std::uint8_t* pixels, std::size_t count) const;

  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_source_mgr source_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf jump_;
  char message_[JMSG_LENGTH_MAX] = "";
  bool out_of_memory_ = false;  // when libjpeg gave up
  int most_scans_ = 0;
  bool created_ = false;
  bool has_scans_ = false;  // more than one
  Box box_;
  std::uint8_t* row_ = nullptr;
  std::size_t first_pixel_ = 0;  // of the box, in row_
};

void JpegDecoder::fail(const char* reason) {
  std::snprintf(message_, sizeof message_, "%s", reason);
  out_of_memory_ = false;
  std::longjmp(jump_, 1);
}

// A good sample must not be taken for a bad one because memory was short.
Error JpegDecoder::error() const {
  if (!out_of_memory_) return {Code::kBadSample, fmt::format("JPEG: {}", message_)};
  return {
      Code::kNoMemory,
      fmt::format("JPEG of {}x{} pixels: {}; lower the memory budget or use fewer threads, so that more is left for "
                  "libjpeg",
                  info_.image_width, info_.image_height, message_)};
}

void JpegDecoder::on_error(j_common_ptr info) {
  info->err->format_message(info, of(info).message_);
  const int reason = info->err->msg_code;
  of(info).out_of_memory_ = reason == JERR_OUT_OF_MEMORY || reason == JERR_NO_BACKING_STORE;
  std::longjmp(of(info).jump_, 1);
}

void JpegDecoder::on_message(j_common_ptr info, int level) {
  if (level < 0) ++info->err->num_warnings;
}

// The scans were counted before, but the decoder may see more of them in a damaged file.
void JpegDecoder::on_progress(j_common_ptr info) {
  JpegDecoder& self = of(info);
  if (self.info_.input_scan_number > self.most_scans_) self.fail("more scans than the limit");
}

boolean JpegDecoder::on_end_of_data(j_decompress_ptr info) {
  of(reinterpret_cast<j_common_ptr>(info)).fail("the data ends early");
}

void JpegDecoder::on_skip(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  jpeg_source_mgr& source = *info->src;
  if (static_cast<std::size_t>(count) > source.bytes_in_buffer) on_end_of_data(info);
  source.next_input_byte += count;
  source.bytes_in_buffer -= static_cast<std::size_t>(count);
}

JpegDecoder::JpegDecoder() {
  info_.err = jpeg_std_error(&errors_);
  errors_.error_exit = on_error;
  errors_.emit_message = on_message;
  info_.client_data = this;
  created_ = guarded([this] { jpeg_create_decompress(&info_); });
  source_.init_source = [](j_decompress_ptr) {};
  source_.term_source = [](j_decompress_ptr) {};
  source_.fill_input_buffer = on_end_of_data;
  source_.skip_input_data = on_skip;
  source_.resync_to_restart = jpeg_resync_to_restart;
  progress_.progress_monitor = on_progress;
  info_.src = &source_;
  info_.progress = &progress_;
}

JpegDecoder::~JpegDecoder() {
  if (created_) jpeg_destroy_decompress(&info_);
}

void JpegDecoder::close() {
  if (created_) jpeg_abort_decompress(&info_);
}

Result<Dimensions> JpegDecoder::open(std::span<const std::byte> bytes, const Limits& limits) {
  if (!created_) return Error{Code::kNoMemory, "libjpeg could not allocate a decoder"};
  close();
  source_.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
  source_.bytes_in_buffer = bytes.size();
  most_scans_ = static_cast<int>(std::min<std::uint32_t>(limits.scans, 1u << 30));
  if (!guarded([this] { read_header(); })) return error();
  FORELOAD_TRY(check_header(limits));
  FORELOAD_TRY(check_data(limits));
  return Dimensions{info_.image_width, info_.image_height};
}

void JpegDecoder::read_header() {
  jpeg_read_header(&info_, TRUE);
  has_scans_ = jpeg_has_multiple_scans(&info_);
}

Status JpegDecoder::check_header(const Limits& limits) const {
  FORELOAD_TRY(check_pixels({info_.image_width, info_.image_height}, limits));
  if (info_.num_components != 1 && info_.num_components != 3 && info_.num_components != 4) {
    return Error{Code::kBadSample,
                 fmt::format("JPEG: {} colour components; known are 1, 3 and 4", info_.num_components)};
  }
  return {};
}

// What can be said about the data without decoding it. A Huffman code has at least one bit per block.
Status JpegDecoder::check_data(const Limits& limits) const {
  const std::span data(reinterpret_cast<const std::byte*>(source_.next_input_byte), source_.bytes_in_buffer);
  if (!info_.arith_code && blocks() / 8 > data.size()) {
    return Error{Code::kBadSample,
                 fmt::format("JPEG: {} bytes can not hold {}x{} pixels; the file is cut off or forged", data.size(),
                             info_.image_width, info_.image_height)};
  }
  JpegScans scans{1, false};
  if (has_scans_) {
    scans = count_jpeg_scans(data, limits.scans);
  } else {
    scans.complete = has_jpeg_end(data);
  }
  if (scans.count > limits.scans) {
    return Error{Code::kBadSample, fmt::format("JPEG: more than {} scans, the limit", limits.scans)};
  }
  if (!scans.complete) return Error{Code::kBadSample, "JPEG: the file is cut off: it has no end-of-image marker"};
  return {};
}

std::uint64_t JpegDecoder::blocks() const {
  std::uint64_t sum = 0;
  for (int i = 0; i < info_.num_components; ++i) {
    sum += std::uint64_t{info_.comp_info[i].width_in_blocks} * info_.comp_info[i].height_in_blocks;
  }
  return sum;
}

std::uint32_t JpegDecoder::mcu_width() const {
  return info_.num_components == 1 ? DCTSIZE : DCTSIZE * static_cast<std::uint32_t>(info_.max_h_samp_factor);
}

Columns JpegDecoder::columns_of(const Box& box) const {
  const std::uint32_t mcu = mcu_width();
  const std::uint32_t width = info_.image_width;
  std::uint32_t first = box.x == 0 ? 0 : (box.x - 1) / mcu * mcu;
  const std::uint32_t end = std::min((box.x + box.width + mcu) / mcu * mcu, width);
  if (end - first < mcu && first > 0) first -= mcu;  // the picture's last, incomplete MCU
  return {first, end};
}

// An upper bound of libjpeg's allocations: sample rows of an MCU row and its neighbours, one row group in
// full colour, tables; and for files of several scans the coefficients of the whole picture.
DecodeMemory JpegDecoder::memory(const Box& box) const {
  constexpr Bytes kTables = 96_KiB;
  constexpr Bytes kContextRows = DCTSIZE + 4;
  Bytes rows = 0;
  Bytes coefficients = 0;
  for (int i = 0; i < info_.num_components; ++i) {
    const jpeg_component_info& part = info_.comp_info[i];
    const auto h = static_cast<Bytes>(part.h_samp_factor);
    const auto v = static_cast<Bytes>(part.v_samp_factor);
    const Bytes wide = (part.width_in_blocks + h - 1) / h * h;
    const Bytes high = (part.height_in_blocks + v - 1) / v * v;
    rows += v * kContextRows * (wide * DCTSIZE + 64);
    rows += static_cast<Bytes>(info_.max_v_samp_factor) * (info_.image_width + Bytes{64});
    coefficients += wide * high * kBlockBytes + high * sizeof(void*) + wide * v * kBlockBytes;
  }
  if (!has_scans_) coefficients = 0;
  return {row_bytes(columns_of(box).count()) + kMisalignment, kTables + rows + coefficients};
}

Status JpegDecoder::start(const Box& box, std::span<std::uint8_t> scratch) {
  const Columns columns = columns_of(box);
  FORELOAD_CHECK(scratch.size() >= row_bytes(columns.count()) + kMisalignment, "memory() was asked");
  box_ = box;
  row_ = scratch.data() + kMisalignment;
  first_pixel_ = box.x - columns.first;
  std::memset(row_ + columns.count() * kPixelBytes, 0, kRowSlack);
  if (!guarded([this, columns] { start_at(columns, box_.y); })) return error();
  FORELOAD_CHECK(info_.output_width == columns.count(), "libjpeg cuts at the MCUs that were given");
  return {};
}

void JpegDecoder::start_at(const Columns& columns, std::uint32_t row) {
  info_.out_color_space = info_.num_components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
  info_.dct_method = JDCT_ISLOW;
  info_.do_fancy_upsampling = TRUE;
  jpeg_start_decompress(&info_);
  if (columns.count() < info_.output_width) {
    JDIMENSION first = columns.first;
    JDIMENSION count = columns.count();
    jpeg_crop_scanline(&info_, &first, &count);
  }
  if (row > 0) jpeg_skip_scanlines(&info_, row);
}

Result<const std::uint8_t*> JpegDecoder::next_row() {
  JDIMENSION read = 0;
  JDIMENSION* const read_to = &read;
  if (!guarded([this, read_to] { *read_to = jpeg_read_scanlines(&info_, &row_, 1); })) return error();
  FORELOAD_CHECK(read == 1, "our source never suspends");
  std::uint8_t* pixels = row_ + first_pixel_ * kPixelBytes;
  if (info_.num_components == 4) cmyk_to_rgb(pixels, box_.width);
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
  return std::make_unique<JpegDecoder>();
}

}  // namespace foreload
