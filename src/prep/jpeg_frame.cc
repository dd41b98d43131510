#include "prep/jpeg_frame.h"

#include <fmt/format.h>

#include <algorithm>

#include "prep/image.h"
#include "prep/jpeg_bytes.h"
#include "prep/jpeg_markers.h"

namespace foreload {

namespace {

constexpr Bytes kBlockBytes = 64 * sizeof(JCOEF);

}  // namespace

JpegFrame JpegFrame::of(const JpegLayout& layout) {
  JpegFrame frame{layout.size, layout.components};
  std::copy(layout.sampling.begin(), layout.sampling.end(), frame.sampling.begin());
  for (const JpegSampling& part : frame.parts()) {
    frame.max_h = std::max<std::uint32_t>(frame.max_h, part.h);
    frame.max_v = std::max<std::uint32_t>(frame.max_v, part.v);
  }
  return frame;
}

Result<JpegFrame> JpegFrame::of(JpegReader& reader, const Limits& limits) {
  jpeg_decompress_struct& info = reader.info();
  FORELOAD_TRY(check_pixels({info.image_width, info.image_height}, limits));
  if (info.num_components != 1 && info.num_components != 3 && info.num_components != 4) {
    return Error{Code::kBadSample,
                 fmt::format("JPEG: {} colour components; known are 1, 3 and 4", info.num_components)};
  }
  JpegFrame frame{{info.image_width, info.image_height}, static_cast<std::uint32_t>(info.num_components)};
  for (std::size_t i = 0; i < frame.components; ++i) {
    frame.sampling[i] = {static_cast<std::uint8_t>(info.comp_info[i].h_samp_factor),
                         static_cast<std::uint8_t>(info.comp_info[i].v_samp_factor)};
  }
  frame.max_h = static_cast<std::uint32_t>(info.max_h_samp_factor);
  frame.max_v = static_cast<std::uint32_t>(info.max_v_samp_factor);
  frame.is_arithmetic = info.arith_code;
  frame.is_progressive = info.progressive_mode;
  frame.has_scans = jpeg_has_multiple_scans(&info);
  return frame;
}

bool JpegFrame::is_subsampled_x() const {
  return std::any_of(parts().begin(), parts().end(), [this](const JpegSampling& part) { return part.h < max_h; });
}

bool JpegFrame::has_usual_sampling() const {
  if (components == 1) return true;
  const bool others_are_1 = std::all_of(parts().begin() + 1, parts().end(), [](const JpegSampling& part) {
    return part == JpegSampling{1, 1};
  });
  return others_are_1 && (max_h <= 2 ? max_v <= 2 : max_h == 4 && max_v == 1);
}

Bytes JpegFrame::coefficient_bytes() const {
  Bytes sum = 0;
  for (const JpegSampling& part : parts()) {
    const Bytes wide = parts_of(Bytes{size.width}, DCTSIZE * max_h) * part.h;
    const Bytes high = parts_of(Bytes{size.height}, DCTSIZE * max_v) * part.v;
    sum += wide * high * kBlockBytes + high * sizeof(void*) + wide * part.v * kBlockBytes;
  }
  return sum;
}

// A Huffman code has at least one bit per block.
Status JpegFrame::check_length(std::size_t data_bytes) const {
  Bytes blocks = 0;
  for (const JpegSampling& part : parts()) {
    blocks +=
        parts_of(Bytes{size.width} * part.h, DCTSIZE * max_h) * parts_of(Bytes{size.height} * part.v, DCTSIZE * max_v);
  }
  if (is_arithmetic || blocks / 8 <= data_bytes) return {};
  return Error{Code::kBadSample, fmt::format("JPEG: {} bytes can not hold {}x{} pixels; the file is cut off or forged",
                                             data_bytes, size.width, size.height)};
}

Status JpegFrame::check_data(std::span<const std::byte> data, const Limits& limits) const {
  FORELOAD_TRY(check_length(data.size()));
  JpegScans scans{1, false};
  if (has_scans) {
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

}  // namespace foreload
