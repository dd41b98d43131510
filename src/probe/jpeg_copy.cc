#include "probe/jpeg_copy.h"

namespace foreload {

namespace {

constexpr std::uint32_t kMostScans = 500;

void write(jpeg_decompress_struct& from, jpeg_compress_struct& to, jvirt_barray_ptr* coefficients,
           std::uint32_t interval) {
  jpeg_copy_critical_parameters(&from, &to);
  to.optimize_coding = TRUE;
  to.arith_code = FALSE;
  to.restart_interval = interval;
  to.restart_in_rows = 0;
  jpeg_write_coefficients(&to, coefficients);
  jpeg_finish_compress(&to);
}

}  // namespace

Result<std::span<const std::byte>> JpegCopier::copy(std::span<const std::byte> jpeg, std::uint32_t interval) {
  if (!writer_.is_created()) return Error{Code::kNoMemory, "libjpeg could not allocate an encoder"};
  FORELOAD_TRY(input_.open(jpeg, kMostScans));
  jvirt_barray_ptr* coefficients = nullptr;
  if (!input_.guard().run([&] { coefficients = jpeg_read_coefficients(&input_.info()); })) return input_.error();
  writer_.begin(4 * jpeg.size() + 1_MiB);
  const bool written = writer_.guard().run([&] { write(input_.info(), writer_.info(), coefficients, interval); });
  const Dimensions size{input_.info().image_width, input_.info().image_height};
  input_.close();
  if (!written) return writer_.guard().error(size);
  return writer_.result();
}

}  // namespace foreload
