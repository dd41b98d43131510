// The coefficients are read, those of the box copied to arrays of their own, and written as one baseline scan.
#include "probe/jpeg_crop.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "prep/jpeg_library.h"
#include "prep/jpeg_writer.h"

namespace foreload {

namespace {

constexpr std::uint32_t kMostScans = 500;

// The box in MCUs, and the pixels of that.
struct McuBox {
  std::uint32_t x, y, width, height;
  Dimensions size;

  McuBox(const jpeg_decompress_struct& in, const Box& box) {
    const auto mcu_width = static_cast<std::uint32_t>(in.max_h_samp_factor * DCTSIZE);
    const auto mcu_height = static_cast<std::uint32_t>(in.max_v_samp_factor * DCTSIZE);
    x = box.x / mcu_width;
    y = box.y / mcu_height;
    width = (box.x + box.width + mcu_width - 1) / mcu_width - x;
    height = (box.y + box.height + mcu_height - 1) / mcu_height - y;
    size.width = std::min<std::uint32_t>(in.image_width, (x + width) * mcu_width) - x * mcu_width;
    size.height = std::min<std::uint32_t>(in.image_height, (y + height) * mcu_height) - y * mcu_height;
  }
};

void copy_blocks(jpeg_decompress_struct& in, int component, jvirt_barray_ptr from, jvirt_barray_ptr to,
                 const McuBox& box) {
  const jpeg_component_info& plane = in.comp_info[component];
  const auto h = static_cast<JDIMENSION>(plane.h_samp_factor);
  const auto v = static_cast<JDIMENSION>(plane.v_samp_factor);
  auto* common = reinterpret_cast<j_common_ptr>(&in);
  for (JDIMENSION row = 0; row < box.height * v; ++row) {
    const JBLOCKARRAY source = in.mem->access_virt_barray(common, from, box.y * v + row, 1, FALSE);
    const JBLOCKARRAY target = in.mem->access_virt_barray(common, to, row, 1, TRUE);
    std::memcpy(target[0], source[0] + box.x * h, box.width * h * sizeof(JBLOCK));
  }
}

void write_crop(jpeg_decompress_struct& in, jpeg_compress_struct& out, const McuBox& box) {
  jvirt_barray_ptr crop[MAX_COMPONENTS];
  auto* common = reinterpret_cast<j_common_ptr>(&in);
  for (int i = 0; i < in.num_components; ++i) {
    const auto h = static_cast<JDIMENSION>(in.comp_info[i].h_samp_factor);
    const auto v = static_cast<JDIMENSION>(in.comp_info[i].v_samp_factor);
    crop[i] = in.mem->request_virt_barray(common, JPOOL_IMAGE, FALSE, box.width * h, box.height * v, v);
  }
  jvirt_barray_ptr* whole = jpeg_read_coefficients(&in);
  jpeg_copy_critical_parameters(&in, &out);
  out.image_width = box.size.width;
  out.image_height = box.size.height;
  out.optimize_coding = TRUE;
  for (int i = 0; i < in.num_components; ++i) copy_blocks(in, i, whole[i], crop[i], box);
  jpeg_write_coefficients(&out, crop);
  jpeg_finish_compress(&out);
}

}  // namespace

Result<std::vector<std::byte>> crop_jpeg(std::span<const std::byte> jpeg, const Box& box) {
  JpegReader reader;
  FORELOAD_TRY(reader.open(jpeg, kMostScans));
  JpegWriter writer;
  if (!writer.is_created()) return Error{Code::kNoMemory, "no memory for a JPEG compressor"};
  writer.begin(SIZE_MAX);
  jpeg_decompress_struct& in = reader.info();
  const McuBox crop(in, box);
  // Either of the two may give up, and leaves through its own guard.
  bool is_written = false;
  const bool is_read =
      reader.guard().run([&] { is_written = writer.guard().run([&] { write_crop(in, writer.info(), crop); }); });
  if (!is_read) return reader.error();
  if (!is_written) return writer.guard().error(crop.size);
  return std::vector<std::byte>(writer.result().begin(), writer.result().end());
}

}  // namespace foreload
