// libjpeg-turbo tamed: its errors come back as values, it prints nothing, reads from memory, and stops when a file
// has more scans than the limit. For the JPEG decoder and the rewriter; not thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

#include <jpeglib.h>

#include "foreload/result.h"
#include "foreload/source.h"

namespace foreload {

// The error manager of one libjpeg object, whose client_data must be the guard.
class JpegGuard {
 public:
  JpegGuard();
  JpegGuard(const JpegGuard&) = delete;
  JpegGuard& operator=(const JpegGuard&) = delete;

  jpeg_error_mgr* manager() { return &manager_; }
  // Runs calls into libjpeg; false when it gave up. What `call` captures and creates must not need destruction:
  // libjpeg leaves by longjmp.
  template <typename Call>
  bool run(Call call) {
    if (setjmp(jump_) != 0) return false;
    call();
    return true;
  }
  // To be called inside run().
  [[noreturn]] void fail(const char* reason);
  // Why libjpeg gave up: kBadSample, or kNoMemory when that was the cause.
  Error error(Dimensions size) const;
  // Complaints of libjpeg about data that it decoded nevertheless.
  long warnings() const { return manager_.num_warnings; }
  void forget_warnings() { manager_.num_warnings = 0; }

 private:
  static void on_error(j_common_ptr info);
  static void on_message(j_common_ptr info, int level);

  jpeg_error_mgr manager_{};
  std::jmp_buf jump_;
  char message_[JMSG_LENGTH_MAX] = "";
  bool out_of_memory_ = false;
};

// From now on every reader of this thread fails soon after `flag` has become true. For a thread whose results nobody
// wants then: a large progressive file takes many seconds. `flag` must outlive the thread.
void give_up_jpegs_when(const std::atomic<bool>& flag);

// A decompressor that reads from memory.
class JpegReader {
 public:
  JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader();

  // Reads the header. `bytes` must live until close().
  Status open(std::span<const std::byte> bytes, std::uint32_t most_scans);
  // Frees what libjpeg holds for this picture. Also done by open().
  void close();
  // What was not read yet.
  std::span<const std::byte> rest() const;
  // Whether libjpeg guesses coefficients from the blocks around, because scans of a progressive file are missing. Then
  // a pixel depends on more than its own blocks. To be asked when all scans have been read.
  bool is_smoothed() const;
  Error error() const { return guard_.error({info_.image_width, info_.image_height}); }
  bool is_created() const { return created_; }

  jpeg_decompress_struct& info() { return info_; }
  const jpeg_decompress_struct& info() const { return info_; }
  JpegGuard& guard() { return guard_; }
  const JpegGuard& guard() const { return guard_; }

 private:
  // libjpeg keeps tables from file to file, and a file that lacks its own would be decoded with those of a stranger. So
  // they are forgotten before each; and because libjpeg then asks for new ones, which it would never free, it gets
  // these.
  struct Tables {
    std::array<JQUANT_TBL, NUM_QUANT_TBLS> quantisation;
    std::array<JHUFF_TBL, std::size_t{2} * NUM_HUFF_TBLS> huffman;
    std::size_t quantisation_used = 0;
    std::size_t huffman_used = 0;
  };
  struct Source : jpeg_source_mgr {
    Tables tables;
    decltype(jpeg_memory_mgr::alloc_small) allocate;  // libjpeg's own
  };
  void forget_tables();
  static void* on_allocate(j_common_ptr info, int pool, std::size_t bytes);
  static boolean on_end_of_data(j_decompress_ptr info);
  static void on_skip(j_decompress_ptr info, long count);
  static void on_progress(j_common_ptr info);

  JpegGuard guard_;
  jpeg_decompress_struct info_{};
  Source source_{};
  struct Progress : jpeg_progress_mgr {
    int most_scans;
  } progress_{};
  bool created_ = false;
};

}  // namespace foreload
