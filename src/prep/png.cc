// libpng unpacks a row to whole bytes in the file's own colours; the columns of the box are then turned into
// RGB here, because what Pillow's convert('RGB') does is not what libpng's transformations do:
//   gray, gray + alpha   the gray value three times (16 bits of gray + alpha: the high byte)
//   gray with 16 bits    the value cut off at 255: Pillow reads it as a 32-bit integer
//   palette              its colour; an index beyond the palette is a gray of that value
//   RGB, RGBA            the high byte of 16
// Alpha and transparency are dropped, not blended. All optional chunks are skipped unread.
#include "prep/png.h"

#include <fmt/format.h>
#include <png.h>

#include <array>
#include <csetjmp>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "prep/rows.h"

namespace foreload {

namespace {

constexpr std::array<unsigned char, 8> kSignature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr std::size_t kHeaderEnd = 33;  // signature, IHDR and its checksum

struct PngHeader {
  Dimensions size;
  int depth = 0;
  int type = 0;
  bool interlaced = false;

  int channels() const {
    if (type == PNG_COLOR_TYPE_RGB) return 3;
    if (type == PNG_COLOR_TYPE_RGB_ALPHA) return 4;
    return type == PNG_COLOR_TYPE_GRAY_ALPHA ? 2 : 1;
  }
  bool is_gray16() const { return type == PNG_COLOR_TYPE_GRAY && depth == 16; }
  // Of a pixel after unpacking.
  std::size_t pixel_bytes() const { return is_gray16() ? 2 : static_cast<std::size_t>(channels()); }
  // Of a row in the file.
  Bytes file_row_bytes() const { return (Bytes{size.width} * static_cast<unsigned>(channels() * depth) + 7) / 8; }
};

std::uint32_t u32(std::span<const std::byte> bytes, std::size_t i) {
  std::uint32_t value = 0;
  for (std::size_t k = i; k < i + 4; ++k) value = value << 8 | static_cast<std::uint32_t>(bytes[k]);
  return value;
}

// libpng checks the rest: allowed combinations and the checksum.
Result<PngHeader> parse_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderEnd || std::memcmp(bytes.data() + 12, "IHDR", 4) != 0) {
    return Error{Code::kBadSample, "PNG: the file ends before or has no header"};
  }
  const PngHeader header{{u32(bytes, 16), u32(bytes, 20)},
                         static_cast<int>(bytes[24]),
                         static_cast<int>(bytes[25]),
                         bytes[28] != std::byte{0}};
  const bool known_depth = header.depth > 0 && header.depth <= 16 && (header.depth & (header.depth - 1)) == 0;
  const bool known_type = header.type <= 6 && header.type != 1 && header.type != 5;
  if (known_depth && known_type) return header;
  return Error{Code::kBadSample,
               fmt::format("PNG: colour type {} with {} bits does not exist", header.type, header.depth)};
}

class PngDecoder final : public ImageDecoder {
 public:
  PngDecoder() = default;
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;
  ~PngDecoder() override { close(); }

  Result<Dimensions> open(std::span<const std::byte> bytes, const Limits& limits) override;
  DecodeMemory memory(const Box& box) const override;
  Status start(const Box& box, std::span<std::uint8_t> scratch) override;
  Result<const std::uint8_t*> next_row() override;
  void close() override;
  bool damaged() const override { return warnings_ > 0; }

 private:
  [[noreturn]] static void on_error(png_structp png, png_const_charp message);
  static void on_warning(png_structp png, png_const_charp message);
  static void on_read(png_structp png, png_bytep to, std::size_t count);
  static void* on_malloc(png_structp png, png_alloc_size_t size);

  // As in jpeg.cc: false when libpng gave up.
  template <typename Call>
  bool guarded(Call call) {
    if (setjmp(jump_) != 0) return false;
    call();
    return true;
  }
  Error error() const;

  std::size_t file_row_room() const { return header_.size.width * header_.pixel_bytes() + kRowSlack; }
  void start_reading();
  void read_palette();
  void read_interlaced();
  void skip_rows(std::uint32_t rows);
  void to_rgb(const std::uint8_t* from);

  PngHeader header_;
  std::span<const std::byte> rest_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_;
  char message_[128] = "";
  unsigned warnings_ = 0;
  bool out_of_memory_ = false;
  std::array<std::array<std::uint8_t, kPixelBytes>, 256> palette_;
  Box box_;
  std::uint8_t* file_rows_ = nullptr;  // one row, or all of them when interlaced
  std::uint8_t* rgb_row_ = nullptr;
  std::uint32_t next_ = 0;  // row of the picture
};

void PngDecoder::on_error(png_structp png, png_const_charp message) {
  auto& self = *static_cast<PngDecoder*>(png_get_error_ptr(png));
  std::snprintf(self.message_, sizeof self.message_, "%s", message);
  std::longjmp(self.jump_, 1);
}

void PngDecoder::on_warning(png_structp png, png_const_charp) {
  ++static_cast<PngDecoder*>(png_get_error_ptr(png))->warnings_;
}

void PngDecoder::on_read(png_structp png, png_bytep to, std::size_t count) {
  auto& self = *static_cast<PngDecoder*>(png_get_io_ptr(png));
  if (count > self.rest_.size()) on_error(png, "the data ends early");
  std::memcpy(to, self.rest_.data(), count);
  self.rest_ = self.rest_.subspan(count);
}

// Also called while the decoder itself is allocated. libpng frees with free().
void* PngDecoder::on_malloc(png_structp png, png_alloc_size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) static_cast<PngDecoder*>(png_get_mem_ptr(png))->out_of_memory_ = true;
  return memory;
}

// A good sample must not be taken for a bad one because memory was short.
Error PngDecoder::error() const {
  if (!out_of_memory_) return {Code::kBadSample, fmt::format("PNG: {}", message_)};
  return {Code::kNoMemory,
          fmt::format("PNG of {}x{} pixels: {}; lower the memory budget or use fewer threads, so that more is left for "
                      "libpng",
                      header_.size.width, header_.size.height, message_)};
}

// Deflate shrinks to no less than 1/1032: less data than that can not hold the picture.
Result<Dimensions> PngDecoder::open(std::span<const std::byte> bytes, const Limits& limits) {
  constexpr Bytes kMostDeflate = 1032;
  close();
  warnings_ = 0;
  out_of_memory_ = false;
  FORELOAD_ASSIGN(header_, parse_header(bytes));
  FORELOAD_TRY(check_pixels(header_.size, limits));
  if (header_.size.height > bytes.size() * kMostDeflate / header_.file_row_bytes()) {
    return Error{Code::kBadSample, fmt::format("PNG: {} bytes can not hold {}x{} pixels; the file is cut off or forged",
                                               bytes.size(), header_.size.width, header_.size.height)};
  }
  rest_ = bytes;
  return header_.size;
}

DecodeMemory PngDecoder::memory(const Box& box) const {
  constexpr Bytes kInflate = 128_KiB;
  const Bytes rows = header_.interlaced ? header_.size.height : 1;
  const Bytes widest = std::max<Bytes>(header_.file_row_bytes(), file_row_room());
  return {Scratch::padded(rows * file_row_room()) + row_bytes(box.width), kInflate + 3 * (widest + 128)};
}

Status PngDecoder::start(const Box& box, std::span<std::uint8_t> scratch) {
  const std::size_t rows = header_.interlaced ? header_.size.height : 1;
  const std::size_t rgb_room = row_bytes(box.width);
  FORELOAD_CHECK(scratch.size() >= rows * file_row_room() + rgb_room, "memory() was asked");
  box_ = box;
  rgb_row_ = scratch.data();
  std::memset(rgb_row_, 0, rgb_room);
  file_rows_ = scratch.data() + rgb_room;
  next_ = box.y;
  if (!guarded([this] { start_reading(); })) return error();
  if (header_.interlaced) {
    if (!guarded([this] { read_interlaced(); })) return error();
  } else if (!guarded([this] { skip_rows(box_.y); })) {
    return error();
  }
  return {};
}

void PngDecoder::start_reading() {
  png_ = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, this, on_error, on_warning, this, on_malloc, nullptr);
  info_ = png_ ? png_create_info_struct(png_) : nullptr;
  if (!info_) {
    std::snprintf(message_, sizeof message_, "libpng could not allocate a decoder");
    out_of_memory_ = true;
    std::longjmp(jump_, 1);
  }
  png_set_read_fn(png_, this, on_read);
  png_set_user_limits(png_, header_.size.width, header_.size.height);
  png_set_chunk_malloc_max(png_, 1_MiB);
  png_set_chunk_cache_max(png_, 16);
  // A negative count means: also those that libpng knows, except the critical ones.
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png_, info_);
  if (header_.type == PNG_COLOR_TYPE_PALETTE) read_palette();
  if (header_.depth == 16 && !header_.is_gray16()) png_set_strip_16(png_);
  if (header_.depth < 8 && header_.type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
  if (header_.depth < 8 && header_.type == PNG_COLOR_TYPE_PALETTE) png_set_packing(png_);
  if (header_.interlaced) png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  if (png_get_rowbytes(png_, info_) > header_.size.width * header_.pixel_bytes())
    on_error(png_, "rows of unexpected size");
}

void PngDecoder::read_palette() {
  png_colorp colors = nullptr;
  int count = 0;
  if (png_get_PLTE(png_, info_, &colors, &count) == 0) count = 0;
  for (int i = 0; i < 256; ++i) {
    const auto gray = static_cast<std::uint8_t>(i);
    const png_color color = i < count ? colors[i] : png_color{gray, gray, gray};
    palette_[static_cast<std::size_t>(i)] = {color.red, color.green, color.blue, 0};
  }
}

// Each of the seven passes adds pixels to all rows.
void PngDecoder::read_interlaced() {
  constexpr int kPasses = 7;
  std::memset(file_rows_, 0, header_.size.height * file_row_room());
  for (int pass = 0; pass < kPasses; ++pass) {
    for (std::size_t row = 0; row < header_.size.height; ++row) {
      png_read_row(png_, file_rows_ + row * file_row_room(), nullptr);
    }
  }
}

void PngDecoder::skip_rows(std::uint32_t rows) {
  for (std::uint32_t row = 0; row < rows; ++row) png_read_row(png_, file_rows_, nullptr);
}

Result<const std::uint8_t*> PngDecoder::next_row() {
  const std::uint8_t* row = file_rows_ + (header_.interlaced ? next_ * file_row_room() : 0);
  if (!header_.interlaced && !guarded([this] { skip_rows(1); })) return error();
  ++next_;
  to_rgb(row + box_.x * header_.pixel_bytes());
  return static_cast<const std::uint8_t*>(rgb_row_);
}

void PngDecoder::to_rgb(const std::uint8_t* from) {
  const std::size_t step = header_.pixel_bytes();
  const bool is_color = header_.channels() >= 3;
  const bool is_palette = header_.type == PNG_COLOR_TYPE_PALETTE;
  const bool is_gray16 = header_.is_gray16();
  std::uint8_t* to = rgb_row_;
  for (std::uint32_t i = 0; i < box_.width; ++i, from += step, to += kPixelBytes) {
    if (is_color) {
      std::memcpy(to, from, 3);
    } else if (is_palette) {
      std::memcpy(to, palette_[from[0]].data(), kPixelBytes);
    } else {
      const std::uint8_t gray = is_gray16 ? (from[0] > 0 ? 255 : from[1]) : from[0];
      std::memset(to, gray, 3);
    }
  }
}

void PngDecoder::close() {
  if (png_) png_destroy_read_struct(&png_, &info_, nullptr);
  png_ = nullptr;
  info_ = nullptr;
}

}  // namespace

bool is_png(std::span<const std::byte> bytes) {
  return bytes.size() >= kSignature.size() && std::memcmp(bytes.data(), kSignature.data(), kSignature.size()) == 0;
}

Result<Dimensions> png_dimensions(std::span<const std::byte> bytes) {
  FORELOAD_ASSIGN(const PngHeader header, parse_header(bytes));
  if (header.size.width > 0 && header.size.height > 0) return header.size;
  return Error{Code::kBadSample, "PNG: the header has no size"};
}

std::unique_ptr<ImageDecoder> make_png_decoder() {
  return std::make_unique<PngDecoder>();
}

}  // namespace foreload
