#include "prep/jpeg_encode.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

#include "base/check.h"

namespace foreload {

namespace {

// The only failures of an encoder in memory are a wrong argument and no memory at all.
[[noreturn]] void end_process(j_common_ptr info) {
  char message[JMSG_LENGTH_MAX];
  info->err->format_message(info, message);
  check_failed(__FILE__, __LINE__, "jpeg compression", message);
}

// A libjpeg compressor and the buffer it fills.
class Compressor {
 public:
  Compressor() {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = end_process;
    errors_.output_message = [](j_common_ptr) {};
    jpeg_create_compress(&info_);
    jpeg_mem_dest(&info_, &buffer_, &size_);
  }
  ~Compressor() {
    jpeg_destroy_compress(&info_);
    std::free(buffer_);
  }
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  void configure(unsigned width, unsigned height, const JpegStyle& style);
  void write(std::span<const std::uint8_t* const> rows);
  std::vector<std::byte> bytes() const {
    const auto* begin = reinterpret_cast<const std::byte*>(buffer_);
    return {begin, begin + size_};
  }

 private:
  jpeg_error_mgr errors_{};
  jpeg_compress_struct info_{};
  unsigned char* buffer_ = nullptr;
  unsigned long size_ = 0;
};

J_COLOR_SPACE input_space(JpegColour colour) {
  if (colour == JpegColour::kGray) return JCS_GRAYSCALE;
  if (colour == JpegColour::kRgb) return JCS_RGB;
  return colour == JpegColour::kYcc ? JCS_YCbCr : JCS_CMYK;
}

void Compressor::configure(unsigned width, unsigned height, const JpegStyle& style) {
  info_.image_width = width;
  info_.image_height = height;
  info_.input_components = static_cast<int>(channels(style.colour));
  info_.in_color_space = input_space(style.colour);
  jpeg_set_defaults(&info_);
  if (style.colour == JpegColour::kYcck) jpeg_set_colorspace(&info_, JCS_YCCK);
  if (style.colour == JpegColour::kYcc || style.colour == JpegColour::kRgb) {
    info_.comp_info[0].h_samp_factor = static_cast<int>(style.h_sampling);
    info_.comp_info[0].v_samp_factor = static_cast<int>(style.v_sampling);
  }
  jpeg_set_quality(&info_, static_cast<int>(style.quality), TRUE);
  info_.optimize_coding = TRUE;
  if (style.progressive) jpeg_simple_progression(&info_);
}

void Compressor::write(std::span<const std::uint8_t* const> rows) {
  jpeg_start_compress(&info_, TRUE);
  while (info_.next_scanline < info_.image_height) {
    const auto rest = rows.subspan(info_.next_scanline);
    // libjpeg's rows are not const, but it does not write to them.
    auto** lines = const_cast<JSAMPARRAY>(rest.data());
    jpeg_write_scanlines(&info_, lines, static_cast<JDIMENSION>(rest.size()));
  }
  jpeg_finish_compress(&info_);
}

}  // namespace

unsigned channels(JpegColour colour) {
  if (colour == JpegColour::kGray) return 1;
  return colour == JpegColour::kYcc || colour == JpegColour::kRgb ? 3 : 4;
}

std::vector<std::byte> encode_jpeg(std::span<const std::uint8_t* const> rows, unsigned width, const JpegStyle& style) {
  FORELOAD_CHECK(!rows.empty() && width > 0, "an image has pixels");
  Compressor compressor;
  compressor.configure(width, static_cast<unsigned>(rows.size()), style);
  compressor.write(rows);
  return compressor.bytes();
}

}  // namespace foreload
