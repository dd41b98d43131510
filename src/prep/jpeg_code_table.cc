// Tables of most files are their own and are made for each, so making them must be quick.
#include "prep/jpeg_code_table.h"

#include <algorithm>
#include <cstring>

namespace foreload {

using namespace jpeg_code;

namespace {

// As the standard has them: half a byte of zeros to pass over, half a byte for the size of the value.
Entry entry_of(unsigned symbol, unsigned length, bool is_dc) {
  if (is_dc) return make_entry(length, symbol, 0);
  const unsigned size = symbol & 15;
  const unsigned zeros = symbol >> 4;
  const bool is_end = size == 0 && zeros != 15;
  return make_entry(length, size, is_end ? kEnd : zeros + 1);
}

Entry with_value(Entry entry, std::uint64_t bits) {
  const auto value = static_cast<std::uint32_t>(value_of(bits, entry));
  return (entry & 0xffff) | kHasValue | value << 16;
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

JpegCodeTable::Entry JpegCodeTable::find(std::uint64_t bits) const {
  const auto next = static_cast<std::uint32_t>(bits >> 48);
  for (unsigned length = 1; length <= 16; ++length) {
    if (next >= end_[length]) continue;
    const std::uint32_t symbol = first_[length] + (next >> (16 - length));
    return entry_of(made_of_.huffval[symbol & 0xff], length, is_dc_);
  }
  return 0;
}

}  // namespace foreload
