// JpegWriter: a compressor of libjpeg that writes to memory, and keeps that memory for the next picture. Its errors
// come back as values, like JpegReader's. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

#include "foreload/types.h"
#include "prep/jpeg_library.h"

namespace foreload {

class JpegWriter {
 public:
  JpegWriter();
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;
  ~JpegWriter();

  bool is_created() const { return created_; }
  // The output is never longer than `most`: libjpeg gives up then, and is_too_long().
  void begin(std::size_t most);
  bool is_too_long() const { return too_long_; }
  // To be called inside of the guard's run(), when that is foreseen.
  [[noreturn]] void give_up();
  jpeg_compress_struct& info() { return info_; }
  JpegGuard& guard() { return guard_; }
  std::span<const std::byte> result() const { return {out_.get(), written_}; }
  Bytes held() const { return capacity_; }
  void trim();

 private:
  struct Destination : jpeg_destination_mgr {
    JpegWriter* writer;
  };
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  static JpegWriter& of(j_compress_ptr info) { return *static_cast<Destination*>(info->dest)->writer; }
  static void on_start(j_compress_ptr info) { of(info).set_room(0); }
  static boolean on_full(j_compress_ptr info);
  static void on_end(j_compress_ptr info);
  // Of the memory, what this picture may take.
  std::size_t room() const { return std::min(capacity_, room_limit_); }
  void set_room(std::size_t from);

  JpegGuard guard_;
  jpeg_compress_struct info_{};
  Destination destination_{};
  bool created_ = false;
  bool too_long_ = false;
  std::unique_ptr<std::byte, Free> out_;
  std::size_t capacity_ = 0;
  std::size_t room_limit_ = 0;  // one more than the output may take: libjpeg asks for room as soon as none is left
  std::size_t written_ = 0;
};

}  // namespace foreload
