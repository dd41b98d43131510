// JpegRewriter: makes the crop-addressable twin of a JPEG: the same coefficients and quantisation tables, coded
// again as one baseline scan with a restart marker after every few MCUs. Nothing is returned before the output was
// read again and every coefficient compared. JFIF, EXIF, ICC and Adobe segments are kept; comments and other
// application segments, which no decoder heeds, are dropped. One per thread; it keeps its memory for the next file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "foreload/loader.h"
#include "foreload/result.h"
#include "foreload/source.h"

namespace foreload {

// MCUs between two restart markers, a divisor of the MCUs of a row: the best trade of size against reach. The data is
// what follows the header of the original. REQUIRES: nothing is 0.
std::uint32_t jpeg_restart_interval(std::uint32_t mcus_per_row, std::uint32_t mcu_rows, Bytes data_bytes);

class JpegRewriter {
 public:
  JpegRewriter();
  JpegRewriter(JpegRewriter&&) noexcept;
  JpegRewriter& operator=(JpegRewriter&&) noexcept;
  ~JpegRewriter();

  // What rewrite() takes at most for a file of `file_bytes` with a picture of `size`, whatever its kind; the result
  // is included.
  static Bytes memory(Dimensions size, Bytes file_bytes);
  // Of that, what it still holds when rewrite() has returned; trim() frees it, and with it the last result.
  Bytes held() const;
  void trim();

  // Valid until the next call, and not longer than `most` bytes: where the best restart interval gives more, a longer
  // one is used, at last one run for each row of MCUs. Errors:
  //   kBadSample  the file is broken, breaks a limit, or libjpeg complains about its data
  //   kInvalid    a good file that can not be made crop-addressable, by its kind or within `most`: use it as it is
  //   kNoMemory   the machine has no more
  Result<std::span<const std::byte>> rewrite(std::span<const std::byte> jpeg, const Limits& limits,
                                             std::size_t most = SIZE_MAX);

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace foreload
