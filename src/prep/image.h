// ImageDecoder: turns an encoded picture into rows of RGB pixels, only of the box that is wanted. Colours
// are those of Pillow's convert('RGB'). One decoder per format and runner, used again and again; not
// thread-safe. No decoder prints, and none believes a header beyond the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/check.h"
#include "foreload/loader.h"
#include "foreload/result.h"
#include "foreload/source.h"
#include "prep/geometry.h"
#include "prep/row_hint.h"

namespace foreload {

struct DecodeMemory {
  Bytes scratch = 0;  // to be given to start()
  Bytes library = 0;  // what the library will allocate itself, at most
};

class ImageDecoder {
 public:
  virtual ~ImageDecoder() = default;

  // What a record index knows about the next picture to be opened: where its rows of MCUs begin (jpeg_row_offsets()).
  // It saves a search; it is checked, and ignored when it does not fit. Must live until close().
  // A partial picture is opened and started, or kBadSample: nothing that is not there is looked at.
  virtual void hint_rows(const RowHint& /*hint*/) {}
  // Reads the header and checks it against the limits; decodes nothing. `bytes` must live until close().
  // Errors: kBadSample with the reason.
  virtual Result<Dimensions> open(std::span<const std::byte> bytes, const Limits& limits) = 0;
  // REQUIRES for the rest: open() succeeded; `box` lies inside the picture and is not empty.
  //
  // Whether this picture can be decoded at fewer than eight eighths of its size. A pure function of the file. Only 4, 2
  // and 1 are quicker than 8: libjpeg-turbo has no SIMD code for the others.
  virtual bool can_scale() const { return false; }
  // From now on the picture is the one that a full decode at eighths/8 of the size gives, and boxes lie in that:
  // scaled() of what open() said. REQUIRES: 1 ≤ eighths ≤ 8; 8 unless can_scale(); before memory().
  virtual void set_scale(std::uint32_t eighths) { FORELOAD_CHECK(eighths == 8, "can_scale() was asked"); }
  virtual DecodeMemory memory(const Box& box) const = 0;
  virtual Status start(const Box& box, std::span<std::uint8_t> scratch) = 0;
  // The next row of the box, as of rows.h; valid until the next call. REQUIRES: not more than box.height calls.
  virtual Result<const std::uint8_t*> next_row() = 0;
  // Frees what the library holds for this picture. Also done by open().
  virtual void close() = 0;
  // The library complained since open() but delivered pixels.
  virtual bool damaged() const = 0;
};

// One line per format in image.cc.
struct ImageFormat {
  const char* name;
  bool (*matches)(std::span<const std::byte> bytes);
  Result<Dimensions> (*dimensions)(std::span<const std::byte> bytes);  // from the header alone
  std::unique_ptr<ImageDecoder> (*make)();
};

std::span<const ImageFormat> image_formats();
// The format whose first bytes these are; kBadSample when none.
Result<const ImageFormat*> image_format_of(std::span<const std::byte> bytes);

// The size of a picture that is decoded at eighths/8 of its size.
constexpr Dimensions scaled(Dimensions size, std::uint32_t eighths) {
  const auto side = [eighths](std::uint64_t full) { return static_cast<std::uint32_t>((full * eighths + 7) / 8); };
  return {side(size.width), side(size.height)};
}

// kBadSample when the picture has no pixels or more than the limit.
Status check_pixels(Dimensions size, const Limits& limits);

}  // namespace foreload
