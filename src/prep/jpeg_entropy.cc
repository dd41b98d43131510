// A window of 64 bits is filled from the data, eight bytes at once where none of them is 0xff. The next 10 bits give
// code, value and run of zeros in one look, or at least their lengths, which all that follows waits for. A filling
// lasts for three usual symbols. Codes and values that are longer take a slower path. Where values are not wanted, two
// symbols are passed over at once if the 10 bits hold both.
//
// jpegint.h describes the place of libjpeg's own decoder: an object with a function that is called for each MCU. It is
// a private header of libjpeg, which Debian and others install; where it is missing, libjpeg decodes everything.
#if __has_include(<jpegint.h>)
#define JPEG_INTERNALS
#endif
#include "prep/jpeg_entropy.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <span>

#include "prep/jpeg_bytes.h"
#include "prep/jpeg_markers.h"

#define FORELOAD_ALWAYS_INLINE inline __attribute__((always_inline))
#if defined(__x86_64__)
#define FORELOAD_BMI2 __attribute__((target("bmi,bmi2")))
#else
#define FORELOAD_BMI2
#endif

namespace foreload {

namespace {

using namespace jpeg_code;

constexpr int kMostDc = 1 << 15;
constexpr std::uint64_t kEachByte = 0x0101010101010101;
constexpr std::uint64_t kManySkipped = 64;  // MCUs: from where on a table for two symbols pays
constexpr auto kZigzag = kJpegZigzag;       // a copy of this file is nearer than the library's

FORELOAD_ALWAYS_INLINE std::uint64_t load(const std::uint8_t* from) {
  std::uint64_t bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  if constexpr (std::endian::native == std::endian::little) bytes = __builtin_bswap64(bytes);
  return bytes;
}

FORELOAD_ALWAYS_INLINE bool has_ff(std::uint64_t bytes) {
  return ((~bytes - kEachByte) & bytes & (kEachByte << 7)) != 0;
}

[[maybe_unused]] bool has_bmi2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

}  // namespace

#if defined(JPEG_INTERNALS)
// A newer libjpeg may look for more functions behind those that this header knows: they are null.
struct JpegEntropy::Hook : jpeg_entropy_decoder {
  std::array<void*, 8> none{};
  JpegEntropy* self;
};

JpegEntropy::JpegEntropy(Code code) : hook_(std::make_unique<Hook>()), has_bmi2_(code == Code::kBest && has_bmi2()) {
  hook_->self = this;
  hook_->start_pass = nullptr;
  hook_->decode_mcu = on_mcu;
  hook_->insufficient_data = FALSE;
}

bool JpegEntropy::take_over(jpeg_decompress_struct& info, McuRange columns, std::uint32_t skipped_mcu_rows) {
  if (info.progressive_mode || info.arith_code || jpeg_has_multiple_scans(&info)) return false;
  if (info.Ss != 0 || info.Se != DCTSIZE2 - 1 || info.Ah != 0 || info.Al != 0) return false;  // lossless, or nonsense
  if (info.comps_in_scan > static_cast<int>(kMostParts) || info.blocks_in_MCU > static_cast<int>(kMostBlocks)) {
    return false;
  }
  const std::uint64_t skipped =
      std::uint64_t{info.MCUs_per_row} * skipped_mcu_rows +
      std::uint64_t{info.MCU_rows_in_scan - skipped_mcu_rows} * (info.MCUs_per_row - columns.count());
  make_tables(info, skipped > kManySkipped);
  const std::uint8_t* const data = info.src->next_input_byte;
  window_ = {.at = data, .end = data + info.src->bytes_in_buffer};
  last_dc_ = {};
  columns_ = columns;
  mcus_per_row_ = info.MCUs_per_row;
  column_ = 0;
  interval_ = left_ = info.restart_interval;
  next_marker_ = 0;
  leaps_ = false;
  info.entropy = hook_.get();
  return true;
}

boolean JpegEntropy::on_mcu(j_decompress_ptr info, JBLOCKROW* blocks) {
  JpegEntropy& self = *static_cast<Hook*>(info->entropy)->self;
  if (self.interval_ > 0 && self.left_ == 0 && !self.next_interval()) self.give_up(info);
  const bool is_wanted = self.column_ >= self.columns_.first && self.column_ < self.columns_.end;
  JBLOCKROW* const to = is_wanted ? blocks : nullptr;
  if (to == nullptr) self.leaps_ |= self.can_leap(blocks);
  if (!self.leaps_ && !(self.has_bmi2_ ? self.mcu_bmi2(to) : self.mcu(to))) self.give_up(info);
  --self.left_;
  if (++self.column_ == self.mcus_per_row_) self.column_ = 0;
  return TRUE;
}
#else
struct JpegEntropy::Hook {};

JpegEntropy::JpegEntropy(Code) : has_bmi2_(false) {}

bool JpegEntropy::take_over(jpeg_decompress_struct&, McuRange, std::uint32_t) {
  return false;
}
#endif

JpegEntropy::~JpegEntropy() = default;

void JpegEntropy::make_tables(const jpeg_decompress_struct& info, bool skips_much) {
  for (int i = 0; i < info.comps_in_scan; ++i) {
    const auto place = static_cast<std::size_t>(i);
    const jpeg_component_info& part = *info.cur_comp_info[i];
    dc_of_part_[place] = static_cast<std::uint8_t>(part.dc_tbl_no);
    ac_of_part_[place] = static_cast<std::uint8_t>(part.ac_tbl_no);
    dc_tables_[dc_of_part_[place]].make(*info.dc_huff_tbl_ptrs[part.dc_tbl_no], true);
    JpegCodeTable& ac = ac_tables_[ac_of_part_[place]];
    ac.make(*info.ac_huff_tbl_ptrs[part.ac_tbl_no], false);
    if (skips_much) ac.make_two();
  }
  blocks_ = static_cast<unsigned>(info.blocks_in_MCU);
  for (unsigned i = 0; i < blocks_; ++i) part_of_block_[i] = static_cast<std::uint8_t>(info.MCU_membership[i]);
}

void JpegEntropy::give_up(j_decompress_ptr info) {
  gave_up_ = true;
  static_cast<JpegGuard*>(info->client_data)->fail("the data is not as it should be");
}

// Whether nothing is wanted of what is left of this run: then it need not be read at all. libjpeg skips whole rows.
bool JpegEntropy::can_leap(const JBLOCKROW* blocks) const {
  if (interval_ == 0 || left_ > mcus_per_row_ - column_) return false;
  return blocks == nullptr || column_ >= columns_.end || column_ + left_ <= columns_.first;
}

// The data before a restart marker must be used up, but for the bits that fill its last byte.
bool JpegEntropy::next_interval() {
  const std::uint8_t* at = window_.at;
  const std::uint8_t* const end = window_.end;
  if (leaps_) {
    const auto marker = next_jpeg_marker(std::as_bytes(std::span(at, end)), 0);
    if (!marker) return false;
    at += marker->after - 2;
  } else if (window_.count >= window_.invented + 8) {
    return false;
  }
  if (end - at < 2 || at[0] != 0xff || at[1] != kJpegRst0 + next_marker_) return false;
  window_ = {.at = at + 2, .end = end};
  next_marker_ = (next_marker_ + 1) % 8;
  last_dc_ = {};
  left_ = interval_;
  leaps_ = false;
  return true;
}

FORELOAD_ALWAYS_INLINE void JpegEntropy::Window::fill() {
  if (end - at >= 8) [[likely]] {
    const std::uint64_t next = load(at);
    if (!has_ff(next)) [[likely]] {
      bits |= next >> count;
      at += (63 - count) / 8;
      count |= 56;
      return;
    }
  }
  if (invented > 0) {  // the end was met before
    invented += (63 - count) & 56;
    count |= 56;
    return;
  }
  Window other = *this;  // so that this one can stay in registers
  other.fill_slowly();
  *this = other;
}

// Behind 0xff comes a zero, which is passed over, or a marker, which is where the data ends.
void JpegEntropy::Window::fill_slowly() {
  while (count < 56) {
    if (at != end && (*at != 0xff || (end - at >= 2 && at[1] == 0))) {
      bits |= std::uint64_t{*at} << (56 - count);
      at += *at == 0xff ? 2 : 1;
    } else {
      invented += 8;
    }
    count += 8;
  }
}

FORELOAD_ALWAYS_INLINE void JpegEntropy::Window::drop(Entry entry) {
  bits <<= bits_of(entry);
  count -= bits_of(entry);
}

FORELOAD_ALWAYS_INLINE bool JpegEntropy::read_dc(Window& window, unsigned part) {
  const JpegCodeTable& table = dc_tables_[dc_of_part_[part]];
  window.fill();
  Entry entry = table.one(window.bits);
  if (entry == kUnusual) [[unlikely]] {
    entry = table.find(window.bits);
    if (entry == 0 || size_of(entry) > kMostDcBits) return false;
  }
  last_dc_[part] += value_of(window.bits, entry);
  window.drop(entry);
  return std::abs(last_dc_[part]) < kMostDc;
}

// Goes through a block: step() takes what comes next and says whether the block goes on behind it. Three steps
// are possible without filling the window, and one behind the DC coefficient.
template <typename Step>
FORELOAD_ALWAYS_INLINE void JpegEntropy::walk(Window& window, Step step) {
  static_assert(3 * (kLook + kUsualAcBits) <= 56 && 16 + kMostDcBits + kLook + kUsualAcBits <= 56);
  bool goes_on = step();
  while (goes_on) {
    window.fill();
    goes_on = step() && step() && step();
  }
}

FORELOAD_ALWAYS_INLINE bool JpegEntropy::read_ac(Window& window, const JpegCodeTable& table, JCOEF* to) {
  unsigned place = 0;
  const auto unusual = [&]() __attribute__((always_inline)) {
    window.fill();
    const Entry entry = table.find(window.bits);
    if (entry == 0) {
      place = kBlock;
      return false;
    }
    const int value = value_of(window.bits, entry);
    window.drop(entry);
    window.fill();
    place += advance_of(entry);
    if (place < kBlock) to[kZigzag[place]] = static_cast<JCOEF>(value);
    return place < kBlock - 1;
  };
  walk(
      window, [&]() __attribute__((always_inline)) {
        const Entry entry = table.one(window.bits);
        const unsigned next = place + advance_of(entry);
        if (next >= kBlock && entry == kUnusual) [[unlikely]]
          return unusual();
        const std::uint64_t bits = window.bits;
        window.drop(entry);
        place = next;
        if (next >= kBlock) return false;
        const auto value = entry & kHasValue ? entry >> 16 : static_cast<std::uint32_t>(value_of(bits, entry));
        to[kZigzag[place]] = static_cast<JCOEF>(value);
        return place < kBlock - 1;
      });
  return place == kBlock - 1 || place >= kEnd;
}

FORELOAD_ALWAYS_INLINE bool JpegEntropy::skip_ac(Window& window, const JpegCodeTable& table) {
  unsigned place = 0;
  const auto is_end = [](unsigned at) { return at == kBlock - 1 || (at >= kEnd && at < kEnd + kBlock - 1); };
  walk(
      window, [&]() __attribute__((always_inline)) {
        Entry entry = table.two(window.bits);
        // The first of two may have ended the block already; then they are taken one by one.
        if (place + advance_of(entry) >= kBlock && !is_end(place + advance_of(entry))) [[unlikely]] {
          window.fill();
          entry = table.find(window.bits);
          if (entry == 0) {
            place = kBlock;
            return false;
          }
          window.drop(entry);
          window.fill();
        } else {
          window.drop(entry);
        }
        place += advance_of(entry);
        return place < kBlock - 1;
      });
  return is_end(place);
}

template <bool kStore>
FORELOAD_ALWAYS_INLINE bool JpegEntropy::read_mcu(JBLOCKROW* blocks) {
  Window window = window_;
  for (unsigned i = 0; i < blocks_; ++i) {
    const unsigned part = part_of_block_[i];
    const JpegCodeTable& table = ac_tables_[ac_of_part_[part]];
    if (!read_dc(window, part)) return false;
    if constexpr (kStore) {
      JCOEF* const to = *blocks[i];
      to[0] = static_cast<JCOEF>(last_dc_[part]);
      if (!read_ac(window, table, to)) return false;
    } else if (!skip_ac(window, table)) {
      return false;
    }
  }
  window_ = window;
  return window.count >= window.invented;
}

bool JpegEntropy::mcu(JBLOCKROW* blocks) {
  return blocks != nullptr ? read_mcu<true>(blocks) : read_mcu<false>(blocks);
}

FORELOAD_BMI2 bool JpegEntropy::mcu_bmi2(JBLOCKROW* blocks) {
  return blocks != nullptr ? read_mcu<true>(blocks) : read_mcu<false>(blocks);
}

}  // namespace foreload
