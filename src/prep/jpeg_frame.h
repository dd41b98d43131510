// JpegFrame: what the header of a JPEG says about its picture, whoever read it, and what can be concluded from it
// before any data is decoded. A plain value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "foreload/loader.h"
#include "foreload/result.h"
#include "foreload/source.h"
#include "prep/jpeg_layout.h"
#include "prep/jpeg_library.h"

namespace foreload {

struct JpegFrame {
  Dimensions size;
  std::uint32_t components = 0;
  std::array<JpegSampling, 4> sampling{};
  std::uint32_t max_h = 1;
  std::uint32_t max_v = 1;
  bool is_arithmetic = false;
  bool is_progressive = false;
  bool has_scans = false;  // more than one

  static JpegFrame of(const JpegLayout& layout);
  // Of a header that libjpeg has read. kBadSample when it breaks the limits or has a strange number of components.
  static Result<JpegFrame> of(JpegReader& reader, const Limits& limits);

  std::span<const JpegSampling> parts() const { return std::span(sampling).first(components); }
  // An MCU of one component is one block.
  std::uint32_t mcu_width() const { return components == 1 ? DCTSIZE : DCTSIZE * max_h; }
  std::uint32_t mcu_height() const { return components == 1 ? DCTSIZE : DCTSIZE * max_v; }
  bool is_subsampled_x() const;
  bool has_usual_sampling() const;  // 4:4:4, 4:2:2, 4:2:0, 4:4:0, 4:1:1 or gray
  // Memory that libjpeg needs for the coefficients of the whole picture.
  Bytes coefficient_bytes() const;

  // kBadSample when `data`, all that follows the header, can not be the data of this picture: too short, without an
  // end, or with more scans than the limit.
  Status check_data(std::span<const std::byte> data, const Limits& limits) const;
  // Only whether it is too short.
  Status check_length(std::size_t data_bytes) const;
};

}  // namespace foreload
