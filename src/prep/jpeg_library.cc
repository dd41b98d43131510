#include "prep/jpeg_library.h"

#include <fmt/format.h>

#include <algorithm>

#include <jerror.h>

namespace foreload {

namespace {

thread_local const std::atomic<bool>* wish_to_end = nullptr;

}  // namespace

void give_up_jpegs_when(const std::atomic<bool>& flag) {
  wish_to_end = &flag;
}

JpegGuard::JpegGuard() {
  jpeg_std_error(&manager_);
  manager_.error_exit = on_error;
  manager_.emit_message = on_message;
}

void JpegGuard::fail(const char* reason) {
  std::snprintf(message_, sizeof message_, "%s", reason);
  out_of_memory_ = false;
  std::longjmp(jump_, 1);
}

// A good sample must not be taken for a bad one because memory was short.
Error JpegGuard::error(Dimensions size) const {
  if (!out_of_memory_) return {Code::kBadSample, fmt::format("JPEG: {}", message_)};
  return {
      Code::kNoMemory,
      fmt::format("JPEG of {}x{} pixels: {}; lower the memory budget or use fewer threads, so that more is left for "
                  "libjpeg",
                  size.width, size.height, message_)};
}

void JpegGuard::on_error(j_common_ptr info) {
  auto& guard = *static_cast<JpegGuard*>(info->client_data);
  info->err->format_message(info, guard.message_);
  const int reason = info->err->msg_code;
  guard.out_of_memory_ = reason == JERR_OUT_OF_MEMORY || reason == JERR_NO_BACKING_STORE;
  std::longjmp(guard.jump_, 1);
}

void JpegGuard::on_message(j_common_ptr info, int level) {
  if (level < 0) ++info->err->num_warnings;
}

JpegReader::JpegReader() {
  info_.err = guard_.manager();
  info_.client_data = &guard_;
  created_ = guard_.run([this] { jpeg_create_decompress(&info_); });
  source_.init_source = [](j_decompress_ptr) {};
  source_.term_source = [](j_decompress_ptr) {};
  source_.fill_input_buffer = on_end_of_data;
  source_.skip_input_data = on_skip;
  source_.resync_to_restart = jpeg_resync_to_restart;
  progress_.progress_monitor = on_progress;
  info_.src = &source_;
  info_.progress = &progress_;
  if (!created_) return;
  source_.allocate = info_.mem->alloc_small;
  info_.mem->alloc_small = on_allocate;
}

void* JpegReader::on_allocate(j_common_ptr info, int pool, std::size_t bytes) {
  auto& source = *static_cast<Source*>(reinterpret_cast<j_decompress_ptr>(info)->src);
  Tables& tables = source.tables;
  if (pool == JPOOL_PERMANENT && bytes == sizeof(JQUANT_TBL) && tables.quantisation_used < tables.quantisation.size()) {
    return &tables.quantisation[tables.quantisation_used++];
  }
  if (pool == JPOOL_PERMANENT && bytes == sizeof(JHUFF_TBL) && tables.huffman_used < tables.huffman.size()) {
    return &tables.huffman[tables.huffman_used++];
  }
  return source.allocate(info, pool, bytes);
}

void JpegReader::forget_tables() {
  std::fill(std::begin(info_.quant_tbl_ptrs), std::end(info_.quant_tbl_ptrs), nullptr);
  std::fill(std::begin(info_.dc_huff_tbl_ptrs), std::end(info_.dc_huff_tbl_ptrs), nullptr);
  std::fill(std::begin(info_.ac_huff_tbl_ptrs), std::end(info_.ac_huff_tbl_ptrs), nullptr);
  source_.tables.quantisation_used = source_.tables.huffman_used = 0;
}

JpegReader::~JpegReader() {
  if (created_) jpeg_destroy_decompress(&info_);
}

Status JpegReader::open(std::span<const std::byte> bytes, std::uint32_t most_scans) {
  if (!created_) return Error{Code::kNoMemory, "libjpeg could not allocate a decoder"};
  close();
  forget_tables();
  source_.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
  source_.bytes_in_buffer = bytes.size();
  progress_.most_scans = static_cast<int>(std::min<std::uint32_t>(most_scans, 1u << 30));
  if (!guard_.run([this] { jpeg_read_header(&info_, TRUE); })) return error();
  return {};
}

void JpegReader::close() {
  if (created_) jpeg_abort_decompress(&info_);
}

std::span<const std::byte> JpegReader::rest() const {
  return {reinterpret_cast<const std::byte*>(source_.next_input_byte), source_.bytes_in_buffer};
}

// libjpeg smooths when one of the first nine AC coefficients of a component (older versions: five) is not known to its
// last bit, and some conditions more hold, which are not repeated here.
bool JpegReader::is_smoothed() const {
  constexpr int kGuessed = 9;
  if (!info_.progressive_mode || !info_.coef_bits) return false;
  for (int i = 0; i < info_.num_components; ++i) {
    const int* const bits = info_.coef_bits[i];
    if (std::any_of(bits + 1, bits + 1 + kGuessed, [](int unknown) { return unknown != 0; })) return true;
  }
  return false;
}

boolean JpegReader::on_end_of_data(j_decompress_ptr info) {
  static_cast<JpegGuard*>(info->client_data)->fail("the data ends early");
}

void JpegReader::on_skip(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  jpeg_source_mgr& source = *info->src;
  if (static_cast<std::size_t>(count) > source.bytes_in_buffer) on_end_of_data(info);
  source.next_input_byte += count;
  source.bytes_in_buffer -= static_cast<std::size_t>(count);
}

// The scans may have been counted before, but libjpeg may see more of them in a damaged file.
void JpegReader::on_progress(j_common_ptr info) {
  if (wish_to_end && wish_to_end->load(std::memory_order_relaxed)) {
    static_cast<JpegGuard*>(info->client_data)->fail("stopped");
  }
  const auto& reader = *reinterpret_cast<j_decompress_ptr>(info);
  if (reader.input_scan_number <= static_cast<const Progress*>(info->progress)->most_scans) return;
  static_cast<JpegGuard*>(info->client_data)->fail("more scans than the limit");
}

}  // namespace foreload
