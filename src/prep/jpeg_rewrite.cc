// libjpeg reads the coefficients of the input (any scans, progressive, arithmetic) and writes them again as one
// Huffman-coded scan, with tables that we have made for this picture. Then the output is read like any file, and
// compared with the input's coefficients, which are still in memory: block for block, table for table, and all that
// decides colour.
//
// Blocks that only fill up the last MCU of a row or column belong to no pixel and are not compared: the standard lets
// the encoder choose them. The pixels of both files are the same because libjpeg computes them from coefficients,
// tables and colour marks alone, unless it smooths: such files are refused.
#include "prep/jpeg_rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "prep/jpeg_bytes.h"
#include "prep/jpeg_frame.h"
#include "prep/jpeg_huffman.h"
#include "prep/jpeg_layout.h"
#include "prep/jpeg_library.h"
#include "prep/jpeg_markers.h"
#include "prep/jpeg_writer.h"

namespace foreload {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t kBlockBytes = sizeof(JBLOCK);
// Of a run, on average: its marker, the bits that fill up its last byte, and what it costs to begin anew.
constexpr double kRunBytes = 3.3;

// No picture whose coding is worth a thought takes more: twice the original, or 24 bytes for every 64 pixels.
Bytes most_output(Dimensions size, Bytes file_bytes) {
  return 2 * file_bytes + Bytes{size.width} * size.height * 3 / 8 + 64_KiB;
}

bool begins_with(const jpeg_marker_struct& marker, std::string_view text) {
  return marker.data_length >= text.size() && std::memcmp(marker.data, text.data(), text.size()) == 0;
}

// What changes how the picture is to be shown. JFIF is written by libjpeg.
bool changes_meaning(const jpeg_marker_struct& marker) {
  switch (marker.marker) {
    case kJpegApp0 + 1:
      return begins_with(marker, "Exif\0"sv);
    case kJpegApp0 + 2:
      return begins_with(marker, "ICC_PROFILE\0"sv);
    case kJpegApp0 + 14:
      return begins_with(marker, "Adobe"sv);
    default:
      return false;
  }
}

Error impossible(std::string_view reason) {
  return {Code::kInvalid, fmt::format("a JPEG that can not be made crop-addressable: {}", reason)};
}

bool is_same_table(const JQUANT_TBL* a, const JQUANT_TBL* b) {
  return a && b && std::equal(std::begin(a->quantval), std::end(a->quantval), std::begin(b->quantval));
}

bool is_same_component(const jpeg_component_info& a, const jpeg_component_info& b) {
  return a.component_id == b.component_id && a.h_samp_factor == b.h_samp_factor && a.v_samp_factor == b.v_samp_factor &&
         a.width_in_blocks == b.width_in_blocks && a.height_in_blocks == b.height_in_blocks &&
         is_same_table(a.quant_table, b.quant_table);
}

bool is_same_picture(const jpeg_decompress_struct& a, const jpeg_decompress_struct& b) {
  bool same = a.image_width == b.image_width && a.image_height == b.image_height &&
              a.num_components == b.num_components && a.jpeg_color_space == b.jpeg_color_space &&
              a.saw_JFIF_marker == b.saw_JFIF_marker && a.saw_Adobe_marker == b.saw_Adobe_marker &&
              a.Adobe_transform == b.Adobe_transform;
  for (int i = 0; same && i < a.num_components; ++i) same = is_same_component(a.comp_info[i], b.comp_info[i]);
  return same;
}

// The rows of blocks of a component, as libjpeg holds them.
JBLOCKROW blocks_of(jpeg_decompress_struct& info, jvirt_barray_ptr array, JDIMENSION row) {
  return info.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&info), array, row, 1, FALSE)[0];
}

// Brightness and colour have tables of their own, unless libjpeg gives them the same.
std::size_t table_of(const jpeg_compress_struct& info, int component) {
  return info.comp_info[component].ac_tbl_no == 0 ? 0 : 1;
}

void copy_table(const JpegHuffmanTable& from, JHUFF_TBL* to) {
  std::copy(from.bits.begin(), from.bits.end(), to->bits);
  std::copy(from.values.begin(), from.values.end(), to->huffval);
  to->sent_table = FALSE;
}

// Counts the symbols of one component in the order of the MCUs. Blocks of an MCU that lie outside of the component
// are filled by libjpeg.
class ComponentCounter {
 public:
  ComponentCounter(jpeg_decompress_struct& info, jvirt_barray_ptr array, int component, JpegSymbolCounts& counts)
      : info_(info), array_(array), part_(info.comp_info[component]), counts_(counts) {
    // An MCU of one component is one block.
    if (info.num_components == 1) return;
    h_ = static_cast<JDIMENSION>(part_.h_samp_factor);
    v_ = static_cast<JDIMENSION>(part_.v_samp_factor);
  }

  void add_row(std::uint32_t row, std::uint32_t mcus, std::uint32_t interval) {
    const JDIMENSION first = row * v_;
    const JDIMENSION inside = std::min(v_, part_.height_in_blocks - first);
    JBLOCKROW rows[4] = {};
    for (JDIMENSION y = 0; y < inside; ++y) rows[y] = blocks_of(info_, array_, first + y);
    for (std::uint32_t mcu = 0; mcu < mcus; ++mcu) {
      if (mcu % interval == 0) last_dc_ = 0;
      for (JDIMENSION y = 0; y < v_; ++y) add_blocks(rows[y], mcu * h_);
    }
  }

 private:
  void add_blocks(JBLOCKROW blocks, JDIMENSION first) {
    for (JDIMENSION x = first; x < first + h_; ++x) {
      if (!blocks || x >= part_.width_in_blocks) {
        counts_.add_filling();
      } else {
        counts_.add(blocks[x], last_dc_);
        last_dc_ = blocks[x][0];
      }
    }
  }

  jpeg_decompress_struct& info_;
  jvirt_barray_ptr array_;
  const jpeg_component_info& part_;
  JpegSymbolCounts& counts_;
  JDIMENSION h_ = 1;
  JDIMENSION v_ = 1;
  int last_dc_ = 0;
};

}  // namespace

// Both costs are shares of a file. Reach: the MCUs that are decoded only because their run has one that is wanted,
// fitted to the boxes of RandomResizedCrop; a wide picture leaves out more columns. Size: counts two and a half times,
// because it is also stored and sent.
std::uint32_t jpeg_restart_interval(std::uint32_t mcus_per_row, std::uint32_t mcu_rows, Bytes data_bytes) {
  const double columns_left_out = std::min(0.23 * mcus_per_row / mcu_rows, 0.5);
  const auto cost = [&](std::uint32_t interval) {
    const double alone = 1 - (interval - 1.0) / mcus_per_row;
    const double runs = static_cast<double>(mcus_per_row / interval) * mcu_rows;
    return columns_left_out * (1 - alone * alone) + 2.5 * kRunBytes * runs / static_cast<double>(data_bytes);
  };
  std::uint32_t best = mcus_per_row;
  for (std::uint32_t interval = 1; interval < mcus_per_row; ++interval) {
    if (mcus_per_row % interval == 0 && cost(interval) < cost(best)) best = interval;
  }
  return best;
}

class JpegRewriter::Work {
 public:
  Work();

  Result<std::span<const std::byte>> rewrite(std::span<const std::byte> jpeg, const Limits& limits, Bytes most);
  JpegWriter& writer() { return writer_; }

 private:
  Status read(std::span<const std::byte> jpeg, const Limits& limits);
  Status write(Bytes most);
  Status verify();
  void write_all(std::uint32_t interval, Bytes most);
  void count_symbols();
  void set_tables();
  Bytes expected_bytes(std::uint32_t interval) const;
  std::uint32_t coarser_interval(std::uint32_t interval, Bytes saved) const;
  std::uint32_t mcus_per_row() const { return parts_of(frame_.size.width, frame_.mcu_width()); }
  std::uint32_t mcu_rows() const { return parts_of(frame_.size.height, frame_.mcu_height()); }
  void compare();

  JpegReader input_;
  JpegReader output_;
  JpegWriter writer_;
  JpegFrame frame_;
  Bytes data_bytes_ = 1;                      // of the input without its header
  jvirt_barray_ptr* coefficients_ = nullptr;  // of the input
  std::array<JpegSymbolCounts, 2> counts_;    // of brightness, and of colour
  std::uint64_t coded_bits_ = 0;              // that they take
  bool is_same_ = false;
  std::vector<std::uint32_t> rows_;
};

JpegRewriter::Work::Work() {
  if (!input_.is_created()) return;  // open() tells
  input_.guard().run([this] {
    for (const int code : {1, 2, 14}) {
      jpeg_save_markers(&input_.info(), static_cast<int>(kJpegApp0) + code, 0xffff);
    }
  });
}

Result<std::span<const std::byte>> JpegRewriter::Work::rewrite(std::span<const std::byte> jpeg, const Limits& limits,
                                                               Bytes most) {
  Status status = read(jpeg, limits);
  if (status) status = write(std::min(most, most_output(frame_.size, jpeg.size())));
  if (status) status = verify();
  input_.close();
  output_.close();
  if (!status) return std::move(status).error();
  return writer_.result();
}

Status JpegRewriter::Work::read(std::span<const std::byte> jpeg, const Limits& limits) {
  FORELOAD_TRY(input_.open(jpeg, limits.scans));
  FORELOAD_ASSIGN(frame_, JpegFrame::of(input_, limits));
  FORELOAD_TRY(frame_.check_data(input_.rest(), limits));
  data_bytes_ = input_.rest().size();
  if (frame_.components == 4) return impossible("it has four components");
  if (!input_.guard().run([this] { coefficients_ = jpeg_read_coefficients(&input_.info()); })) return input_.error();
  if (input_.guard().warnings() > 0) return Error{Code::kBadSample, "JPEG: its data is damaged"};
  if (input_.is_smoothed()) return impossible("scans are missing, and libjpeg guesses what they would hold");
  return {};
}

// Most files take one turn: every turn has longer runs than the one before.
Status JpegRewriter::Work::write(Bytes most) {
  if (!writer_.is_created()) return Error{Code::kNoMemory, "libjpeg could not allocate an encoder"};
  std::uint32_t interval = jpeg_restart_interval(mcus_per_row(), mcu_rows(), data_bytes_);
  for (;;) {
    writer_.begin(most);
    if (writer_.guard().run([this, interval, most] { write_all(interval, most); })) return {};
    if (!writer_.is_too_long() || interval == mcus_per_row()) break;
    const Bytes expected = expected_bytes(interval);
    interval = coarser_interval(interval, expected > most ? expected - most : 1);
  }
  const Error error = writer_.guard().error(frame_.size);
  return error.code == Code::kNoMemory ? error : impossible(error.message);
}

// The smallest that is expected to save so much.
std::uint32_t JpegRewriter::Work::coarser_interval(std::uint32_t interval, Bytes saved) const {
  const std::uint32_t wide = mcus_per_row();
  for (std::uint32_t next = interval + 1; next < wide; ++next) {
    const double fewer_runs = static_cast<double>(wide / interval - wide / next) * mcu_rows();
    if (wide % next == 0 && fewer_runs * kRunBytes >= static_cast<double>(saved)) return next;
  }
  return wide;
}

// A guess: every 256th byte of data is 0xff, which takes two; a marker and half a byte go with each run.
Bytes JpegRewriter::Work::expected_bytes(std::uint32_t interval) const {
  constexpr Bytes kHeader = 600;
  Bytes bytes = kHeader + coded_bits_ / 8 * 257 / 256;
  bytes += Bytes{mcus_per_row() / interval} * mcu_rows() * 5 / 2;
  for (const jpeg_marker_struct* marker = input_.info().marker_list; marker; marker = marker->next) {
    if (changes_meaning(*marker)) bytes += marker->data_length + 4;
  }
  return bytes;
}

void JpegRewriter::Work::write_all(std::uint32_t interval, Bytes most) {
  jpeg_decompress_struct& from = input_.info();
  jpeg_compress_struct& to = writer_.info();
  jpeg_copy_critical_parameters(&from, &to);
  to.optimize_coding = FALSE;
  to.arith_code = FALSE;
  to.write_JFIF_header = from.saw_JFIF_marker;
  to.write_Adobe_marker = FALSE;  // copied below as it was
  to.restart_interval = interval;
  to.restart_in_rows = 0;
  count_symbols();
  set_tables();
  if (interval < mcus_per_row() && expected_bytes(interval) > most) writer_.give_up();
  jpeg_write_coefficients(&to, coefficients_);
  for (const jpeg_marker_struct* marker = from.marker_list; marker; marker = marker->next) {
    if (changes_meaning(*marker)) jpeg_write_marker(&to, marker->marker, marker->data, marker->data_length);
  }
  jpeg_finish_compress(&to);
}

// In the order in which they are coded, because DC coefficients are coded as differences.
void JpegRewriter::Work::count_symbols() {
  const jpeg_compress_struct& to = writer_.info();
  counts_ = {};
  for (int i = 0; i < to.num_components; ++i) {
    ComponentCounter counter(input_.info(), coefficients_[i], i, counts_[table_of(to, i)]);
    for (std::uint32_t row = 0; row < mcu_rows(); ++row) counter.add_row(row, mcus_per_row(), to.restart_interval);
  }
}

void JpegRewriter::Work::set_tables() {
  jpeg_compress_struct& to = writer_.info();
  coded_bits_ = 0;
  const auto set = [this](std::span<const std::uint32_t, 256> counts, JHUFF_TBL* table) {
    const JpegHuffmanTable optimal = optimal_jpeg_table(counts);
    copy_table(optimal, table);
    coded_bits_ += jpeg_coded_bits(counts, optimal);
  };
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (!counts_[i].is_codable()) writer_.guard().fail("a coefficient is too large for baseline coding");
    set(counts_[i].dc(), to.dc_huff_tbl_ptrs[i]);
    set(counts_[i].ac(), to.ac_huff_tbl_ptrs[i]);
  }
}

Status JpegRewriter::Work::verify() {
  const auto bytes = writer_.result();
  FORELOAD_ASSIGN(const JpegLayout layout, parse_jpeg_layout(bytes));
  FORELOAD_TRY(jpeg_row_offsets(bytes, layout, rows_));
  FORELOAD_TRY(output_.open(bytes, 1));
  is_same_ = false;
  if (!output_.guard().run([this] { compare(); })) return output_.error();
  if (is_same_ && output_.guard().warnings() == 0) return {};
  return impossible("the rewritten coefficients differ from the original's");
}

void JpegRewriter::Work::compare() {
  jpeg_decompress_struct& from = input_.info();
  jpeg_decompress_struct& to = output_.info();
  jvirt_barray_ptr* const written = jpeg_read_coefficients(&to);
  if (!is_same_picture(from, to)) return;
  for (int i = 0; i < from.num_components; ++i) {
    const std::size_t row_bytes = from.comp_info[i].width_in_blocks * kBlockBytes;
    for (JDIMENSION row = 0; row < from.comp_info[i].height_in_blocks; ++row) {
      if (std::memcmp(blocks_of(from, coefficients_[i], row), blocks_of(to, written[i], row), row_bytes) != 0) return;
    }
  }
  is_same_ = true;
}

JpegRewriter::JpegRewriter() : work_(std::make_unique<Work>()) {}
JpegRewriter::JpegRewriter(JpegRewriter&&) noexcept = default;
JpegRewriter& JpegRewriter::operator=(JpegRewriter&&) noexcept = default;
JpegRewriter::~JpegRewriter() = default;

// The coefficients of input and output, with no component smaller than the picture; the output while it grows; the
// metadata that is kept; libjpeg's tables.
Bytes JpegRewriter::memory(Dimensions size, Bytes file_bytes) {
  constexpr Bytes kComponents = 3;
  constexpr Bytes kFixed = 256_KiB;
  constexpr Bytes kRoundUp = 32;  // pixels: the largest MCU
  const Bytes samples = (size.width + kRoundUp) * (size.height + kRoundUp) * kComponents;
  return 2 * samples * sizeof(JCOEF) + 2 * most_output(size, file_bytes) + file_bytes + kFixed;
}

Bytes JpegRewriter::held() const {
  return work_->writer().held();
}

void JpegRewriter::trim() {
  work_->writer().trim();
}

Result<std::span<const std::byte>> JpegRewriter::rewrite(std::span<const std::byte> jpeg, const Limits& limits,
                                                         std::size_t most) {
  return work_->rewrite(jpeg, limits, most);
}

}  // namespace foreload
