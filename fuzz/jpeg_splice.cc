// Arbitrary bytes as a crop-addressable JPEG: header parser, search for restart markers, splice, decode of a box at
// any scale with our decoder and with libjpeg's, and the lossless rewrite. The first bytes choose the box, the scale
// and forged row offsets.
#include "prep/jpeg_splice.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "prep/jpeg.h"
#include "prep/jpeg_layout.h"
#include "prep/jpeg_rewrite.h"

namespace {

// Small limits keep the fuzzer quick; the code is the same.
constexpr foreload::Limits kLimits{.pixels = 1 << 20, .scans = 20};

void require(bool holds) {
  if (!holds) std::abort();
}

std::vector<std::uint32_t> find_rows(std::span<const std::byte> jpeg) {
  std::vector<std::uint32_t> rows;
  const auto layout = foreload::parse_jpeg_layout(jpeg);
  if (!layout || std::uint64_t{layout->size.width} * layout->size.height > kLimits.pixels) return {};
  if (!foreload::jpeg_row_offsets(jpeg, *layout, rows)) return {};
  require(foreload::are_jpeg_row_offsets(jpeg, *layout, rows, {0, layout->mcu_rows}));
  return rows;
}

// A splice is crop-addressable itself.
void check_splice(std::span<const std::byte> jpeg, const foreload::Box& box, std::uint32_t eighths,
                  std::span<const std::uint32_t> rows) {
  const auto layout = foreload::parse_jpeg_layout(jpeg);
  const auto splice = foreload::plan_jpeg_splice(*layout, box, eighths);
  std::vector<std::byte> out(foreload::jpeg_splice_bytes(*layout, splice, rows));
  const auto size = foreload::write_jpeg_splice(jpeg, *layout, splice, rows, out);
  require(size.ok());
  require(!find_rows(std::span(out).first(*size)).empty());
}

// The pixels of a box, up to the row where the decoder gave up; empty when it did not begin.
std::vector<std::uint8_t> decode(foreload::ImageDecoder& decoder, std::span<const std::byte> jpeg,
                                 std::span<const std::uint32_t> hint, std::span<const std::uint8_t> choice,
                                 std::span<const std::uint32_t> rows) {
  decoder.hint_rows({.offsets = hint});
  const auto size = decoder.open(jpeg, kLimits);
  if (!size) return {};
  const std::uint32_t eighths = choice[0] % 8 + 1;
  decoder.set_scale(eighths);
  const auto whole = foreload::scaled(*size, eighths);
  foreload::Box box{choice[1] * 3u % whole.width, choice[2] * 3u % whole.height, 0, 0};
  box.width = 1 + choice[3] * 2u % (whole.width - box.x);
  box.height = 1 + choice[0] % (whole.height - box.y);
  if (!rows.empty()) check_splice(jpeg, box, eighths, rows);
  std::vector<std::uint8_t> scratch(decoder.memory(box).scratch);
  if (!decoder.start(box, scratch)) return {};
  std::vector<std::uint8_t> pixels;
  for (std::uint32_t row = 0; row < box.height; ++row) {
    const auto next = decoder.next_row();
    if (!next) break;
    for (std::uint32_t x = 0; x < box.width; ++x) pixels.insert(pixels.end(), *next + 4 * x, *next + 4 * x + 3);
  }
  decoder.close();
  return pixels;
}

// Our own decoder of the data must answer as libjpeg's does.
void decode_both(std::span<const std::byte> jpeg, std::span<const std::uint8_t> choice) {
  static const auto ours = foreload::make_jpeg_decoder();
  static const auto plain = foreload::make_plain_jpeg_decoder();
  const auto rows = find_rows(jpeg);
  auto hint = rows;
  if (!rows.empty() && choice[4] != 0) hint[choice[4] % hint.size()] += choice[5];
  require(decode(*ours, jpeg, hint, choice, rows) == decode(*plain, jpeg, hint, choice, {}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kChoice = 6;
  static foreload::JpegRewriter rewriter;
  if (size < kChoice) return 0;
  const auto jpeg = std::as_bytes(std::span(data, size)).subspan(kChoice);
  decode_both(jpeg, std::span(data, kChoice));
  if (data[0] % 16 != 0) return 0;
  const auto twin = rewriter.rewrite(jpeg, kLimits);
  if (twin) require(!find_rows(*twin).empty());
  return 0;
}
