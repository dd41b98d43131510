// Huffman tables made for one picture: counting the symbols that its coefficients need, and the shortest code for
// them that JPEG allows. Plain values. libjpeg can do both, but takes a third of the time of a rewrite for it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace foreload {

// The symbols of the components that share their tables.
class JpegSymbolCounts {
 public:
  // One block in natural order, whose DC coefficient is coded as its difference to `last_dc`.
  void add(const std::int16_t* block, int last_dc);
  // A block that only fills up an MCU: the same DC coefficient as before, and no other.
  void add_filling();

  // False when a coefficient has more bits than baseline JPEG can code.
  bool is_codable() const { return is_codable_; }
  std::span<const std::uint32_t, 256> dc() const { return dc_; }
  std::span<const std::uint32_t, 256> ac() const { return ac_; }

 private:
  std::array<std::uint32_t, 256> dc_{};
  std::array<std::uint32_t, 256> ac_{};
  bool is_codable_ = true;
};

// As a JPEG file has it.
struct JpegHuffmanTable {
  std::array<std::uint8_t, 17> bits{};     // how many codes have that length
  std::array<std::uint8_t, 256> values{};  // the symbols, shortest code first
};

// An optimal code with at most 16 bits, in which no code is all ones, for the symbols that occur. REQUIRES: the sum
// of the counts is below 2^32.
JpegHuffmanTable optimal_jpeg_table(std::span<const std::uint32_t, 256> counts);

// How many bits the symbols take with that table, and the bits that follow each of them. REQUIRES: every symbol that
// occurs is in the table.
std::uint64_t jpeg_coded_bits(std::span<const std::uint32_t, 256> counts, const JpegHuffmanTable& table);

}  // namespace foreload
