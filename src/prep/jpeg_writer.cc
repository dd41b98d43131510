#include "prep/jpeg_writer.h"

#include <algorithm>
#include <cstdint>

#include <jerror.h>

namespace foreload {

JpegWriter::JpegWriter() {
  info_.err = guard_.manager();
  info_.client_data = &guard_;
  created_ = guard_.run([this] { jpeg_create_compress(&info_); });
  destination_.init_destination = on_start;
  destination_.empty_output_buffer = on_full;
  destination_.term_destination = on_end;
  destination_.writer = this;
  info_.dest = &destination_;
}

JpegWriter::~JpegWriter() {
  if (created_) jpeg_destroy_compress(&info_);
}

void JpegWriter::begin(std::size_t most) {
  jpeg_abort_compress(&info_);
  written_ = 0;
  room_limit_ = std::min(most, SIZE_MAX - 1) + 1;
  too_long_ = false;
}

void JpegWriter::give_up() {
  too_long_ = true;
  guard_.fail("it would be too long");
}

void JpegWriter::trim() {
  out_.reset();
  capacity_ = 0;
  written_ = 0;
}

void JpegWriter::set_room(std::size_t from) {
  destination_.next_output_byte = reinterpret_cast<JOCTET*>(out_.get() + from);
  destination_.free_in_buffer = room() - from;
  if (from == room()) on_full(&info_);
}

boolean JpegWriter::on_full(j_compress_ptr info) {
  JpegWriter& self = of(info);
  const std::size_t before = self.room();
  if (before >= self.room_limit_) self.give_up();
  const std::size_t after = std::min(std::max<std::size_t>(before * 2, 256_KiB), self.room_limit_);
  auto* grown = static_cast<std::byte*>(std::realloc(self.out_.get(), after));
  if (!grown) {
    info->err->msg_code = JERR_OUT_OF_MEMORY;
    info->err->error_exit(reinterpret_cast<j_common_ptr>(info));
  }
  (void)self.out_.release();
  self.out_.reset(grown);
  self.capacity_ = after;
  self.set_room(before);
  return TRUE;
}

void JpegWriter::on_end(j_compress_ptr info) {
  JpegWriter& self = of(info);
  self.written_ = self.room() - self.destination_.free_in_buffer;
}

}  // namespace foreload
