// A window of 64 bits is filled from the data, eight bytes at once where none of them is 0xff. The next 10 bits give
// code, value and run of zeros in one look, or at least their lengths, which all that follows waits for. A filling
// lasts for two usual symbols. Codes and values that are longer take a slower path. Where values are not wanted, two
// symbols are passed over at once if the 10 bits hold both.
//
// libjpeg publishes the place of its own decoder in jpegint.h: an object with a function that is called for each MCU.
#define JPEG_INTERNALS
#include "prep/jpeg_entropy.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "prep/jpeg_bytes.h"
#include "prep/jpeg_markers.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))
#if defined(__x86_64__)
#define FOR_BMI2 __attribute__((target("bmi,bmi2")))
#else
#define FOR_BMI2
#endif

namespace foreload {

namespace {

using Entry = JpegCodeTable::Entry;

constexpr unsigned kLook = JpegCodeTable::kLook;
constexpr unsigned kBlock = DCTSIZE2;
constexpr unsigned kEnd = 2 * kBlock;  // further than any run of zeros can lead
constexpr unsigned kUsualAcBits = 8;
constexpr unsigned kMostDcBits = 11;
constexpr int kMostDc = 1 << 15;
constexpr Entry kHasValue = 64;
constexpr Entry kUnusual = 0xff00;  // leads out of every block
constexpr std::uint64_t kEachByte = 0x0101010101010101;
constexpr std::uint64_t kManySkipped = 64;  // MCUs: from where on a table for two symbols pays
constexpr auto kZigzag = kJpegZigzag;       // a copy of this file is nearer than the library's

constexpr Entry make_entry(unsigned code, unsigned size, unsigned advance) {
  return (code + size) | advance << 8 | size << 16 | code << 24;
}
constexpr unsigned bits_of(Entry entry) {
  return entry & 63;
}
constexpr unsigned advance_of(Entry entry) {
  return entry >> 8 & 0xff;
}
constexpr unsigned size_of(Entry entry) {
  return entry >> 16 & 63;
}
constexpr unsigned code_of(Entry entry) {
  return entry >> 24;
}

// As the standard has them: half a byte of zeros to pass over, half a byte for the size of the value.
Entry entry_of(unsigned symbol, unsigned length, bool is_dc) {
  if (is_dc) return make_entry(length, symbol, 0);
  const unsigned size = symbol & 15;
  const unsigned zeros = symbol >> 4;
  const bool is_end = size == 0 && zeros != 15;
  return make_entry(length, size, is_end ? kEnd : zeros + 1);
}

ALWAYS_INLINE std::uint64_t load(const std::uint8_t* from) {
  std::uint64_t bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  if constexpr (std::endian::native == std::endian::little) bytes = __builtin_bswap64(bytes);
  return bytes;
}

ALWAYS_INLINE bool has_ff(std::uint64_t bytes) {
  return ((~bytes - kEachByte) & bytes & (kEachByte << 7)) != 0;
}

// The value behind the code that stands at the top. Those that begin with 0 are negative.
ALWAYS_INLINE int value_of(std::uint64_t bits, Entry entry) {
  const unsigned size = size_of(entry);
  bits <<= code_of(entry);
  const auto value = static_cast<int>((bits >> 1) >> (63 - size));
  const int is_positive = static_cast<int>(bits >> 63);
  return value - (((1 << size) - 1) & (is_positive - 1));
}

Entry with_value(Entry entry, std::uint64_t bits) {
  const auto value = static_cast<std::uint32_t>(value_of(bits, entry));
  return (entry & 0xffff) | kHasValue | value << 16;
}

bool has_bmi2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

}  // namespace

void JpegCodeTable::make(const JHUFF_TBL& table, bool is_dc) {
  if (is_made_ && is_dc_ == is_dc && std::memcmp(table.bits, made_of_.bits, sizeof table.bits) == 0 &&
      std::memcmp(table.huffval, made_of_.huffval, sizeof table.huffval) == 0) {
    return;
  }
  made_of_ = table;
  is_made_ = true;
  is_dc_ = is_dc;
  has_two_ = false;
  one_.fill(kUnusual);
  std::uint32_t code = 0;
  std::uint32_t symbol = 0;
  for (unsigned length = 1; length <= 16; ++length, code <<= 1) {
    first_[length] = symbol - code;
    for (unsigned i = 0; i < table.bits[length] && symbol < 256; ++i, ++code, ++symbol) {
      const Entry entry = entry_of(table.huffval[symbol], length, is_dc);
      if (length > kLook || size_of(entry) > (is_dc ? kMostDcBits : kUsualAcBits)) continue;
      enter(entry, code << (kLook - length), is_dc);
    }
    end_[length] = code << (16 - length);
  }
}

// At all places that begin with the code; with each value where that fits as well.
void JpegCodeTable::enter(Entry entry, std::uint32_t begin, bool is_dc) {
  if (is_dc || bits_of(entry) > kLook) {
    std::fill_n(one_.begin() + begin, 1u << (kLook - code_of(entry)), entry);
    return;
  }
  const std::uint32_t same = 1u << (kLook - bits_of(entry));
  for (std::uint32_t value = 0; value < 1u << size_of(entry); ++value, begin += same) {
    std::fill_n(one_.begin() + begin, same, with_value(entry, std::uint64_t{begin} << (64 - kLook)));
  }
}

void JpegCodeTable::make_two() {
  if (has_two_) return;
  has_two_ = true;
  for (std::uint32_t next = 0; next < two_.size(); ++next) {
    const Entry first = one_[next];
    const Entry second = one_[next << bits_of(first) & (two_.size() - 1)];
    const unsigned bits = bits_of(first) + bits_of(second);
    const bool both = bits <= kLook && advance_of(first) < kBlock && second != kUnusual;
    two_[next] = both ? make_entry(bits, 0, advance_of(first) + advance_of(second)) : first;
  }
}

Entry JpegCodeTable::find(std::uint64_t bits) const {
  const auto next = static_cast<std::uint32_t>(bits >> 48);
  for (unsigned length = 1; length <= 16; ++length) {
    if (next >= end_[length]) continue;
    const std::uint32_t symbol = first_[length] + (next >> (16 - length));
    return entry_of(made_of_.huffval[symbol & 0xff], length, is_dc_);
  }
  return 0;
}

struct JpegEntropy::Hook : jpeg_entropy_decoder {
  JpegEntropy* self;
};

JpegEntropy::JpegEntropy(Code code) : hook_(std::make_unique<Hook>()), has_bmi2_(code == Code::kBest && has_bmi2()) {
  hook_->self = this;
  hook_->start_pass = nullptr;
  hook_->decode_mcu = on_mcu;
  hook_->insufficient_data = FALSE;
}

JpegEntropy::~JpegEntropy() = default;

bool JpegEntropy::take_over(jpeg_decompress_struct& info, McuRange columns, std::uint32_t skipped_mcu_rows) {
  if (info.progressive_mode || info.arith_code || jpeg_has_multiple_scans(&info)) return false;
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

ALWAYS_INLINE void JpegEntropy::Window::fill() {
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

ALWAYS_INLINE void JpegEntropy::Window::drop(Entry entry) {
  bits <<= bits_of(entry);
  count -= bits_of(entry);
}

ALWAYS_INLINE bool JpegEntropy::read_dc(Window& window, unsigned part) {
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
ALWAYS_INLINE void JpegEntropy::walk(Window& window, Step step) {
  static_assert(3 * (kLook + kUsualAcBits) <= 56 && 16 + kMostDcBits + kLook + kUsualAcBits <= 56);
  bool goes_on = step();
  while (goes_on) {
    window.fill();
    goes_on = step() && step() && step();
  }
}

ALWAYS_INLINE bool JpegEntropy::read_ac(Window& window, const JpegCodeTable& table, JCOEF* to) {
  unsigned place = 0;
  const auto unusual = [&]() __attribute__((always_inline)) {
    window.fill();
    const Entry entry = table.find(window.bits);
    if (entry == 0) return place = kBlock, false;
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

ALWAYS_INLINE bool JpegEntropy::skip_ac(Window& window, const JpegCodeTable& table) {
  unsigned place = 0;
  const auto is_end = [](unsigned at) { return at == kBlock - 1 || (at >= kEnd && at < kEnd + kBlock - 1); };
  walk(
      window, [&]() __attribute__((always_inline)) {
        Entry entry = table.two(window.bits);
        // The first of two may have ended the block already; then they are taken one by one.
        if (place + advance_of(entry) >= kBlock && !is_end(place + advance_of(entry))) [[unlikely]] {
          window.fill();
          entry = table.find(window.bits);
          if (entry == 0) return place = kBlock, false;
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
ALWAYS_INLINE bool JpegEntropy::read_mcu(JBLOCKROW* blocks) {
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

FOR_BMI2 bool JpegEntropy::mcu_bmi2(JBLOCKROW* blocks) {
  return blocks != nullptr ? read_mcu<true>(blocks) : read_mcu<false>(blocks);
}

}  // namespace foreload
