// JpegCodeTable: a Huffman table of a JPEG as our decoder wants it: one look at the next bits of the data tells the
// code, its run of zeros and, if it is short enough, its value. Plain data; libjpeg reads and checks the tables of a
// file.
#pragma once

#include <array>
#include <cstdint>

#include "prep/jpeg_library.h"

namespace foreload {

namespace jpeg_code {

inline constexpr unsigned kLook = 10;  // bits
inline constexpr unsigned kBlock = DCTSIZE2;
inline constexpr unsigned kEnd = 2 * kBlock;  // further than any run of zeros can lead
inline constexpr unsigned kUsualAcBits = 8;
inline constexpr unsigned kMostDcBits = 11;

// What a code stands for, or two that follow each other:
//   bits 0–5    their bits, with those of the values behind them    bit 6   the value is here
//   bits 8–15   places of the block that they advance               bits 16–31   the value,
//   or else bits 16–23 its size and bits 24–31 that of the code, both in bits.
// Codes that are longer than kLook bits, and values that are longer than usual, have kUnusual instead. Zero: there is
// no such code.
using Entry = std::uint32_t;
inline constexpr Entry kHasValue = 64;
inline constexpr Entry kUnusual = 0xff00;  // leads out of every block

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

// The value behind the code that stands at the top. Those that begin with 0 are negative.
inline int value_of(std::uint64_t bits, Entry entry) {
  const unsigned size = size_of(entry);
  bits <<= code_of(entry);
  const auto value = static_cast<int>((bits >> 1) >> (63 - size));
  const int is_positive = static_cast<int>(bits >> 63);
  return value - (((1 << size) - 1) & (is_positive - 1));
}

}  // namespace jpeg_code

// The codes of a Huffman table, looked up by the next bits of the data.
class JpegCodeTable {
 public:
  using Entry = jpeg_code::Entry;

  // REQUIRES: libjpeg has checked the table. Nothing is done if it is the same as before.
  void make(const JHUFF_TBL& table, bool is_dc);
  // From now on also for two codes at once.
  void make_two();

  Entry one(std::uint64_t bits) const { return one_[bits >> (64 - jpeg_code::kLook)]; }
  // Two of them where both fit, and not with the value; otherwise as above.
  Entry two(std::uint64_t bits) const { return (has_two_ ? two_ : one_)[bits >> (64 - jpeg_code::kLook)]; }
  // A code of any length, without its value.
  Entry find(std::uint64_t bits) const;

 private:
  void enter(Entry entry, std::uint32_t begin, bool is_dc);

  std::array<Entry, 1u << jpeg_code::kLook> one_;
  std::array<Entry, 1u << jpeg_code::kLook> two_;
  std::array<std::uint32_t, 17> end_{};    // of the codes of each length, as 16 bits
  std::array<std::uint32_t, 17> first_{};  // index of the first symbol of each length, less its code
  JHUFF_TBL made_of_{};
  bool is_made_ = false;
  bool is_dc_ = false;
  bool has_two_ = false;
};

}  // namespace foreload
