// Counting: most coefficients are 0, so a block becomes a mask of those that are not, its bits are brought into zigzag
// order by tables, and only set bits are visited.
//
// Code: Huffman's, with two queues (symbols in order of their counts, and merged nodes, which arise in that order). One
// more symbol with the smallest count takes the code of all ones, and is then left out. Codes that are too long are
// shortened as the standard does it: a pair of them goes up, and a shorter code becomes the prefix of two.
#include "prep/jpeg_huffman.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "prep/jpeg_bytes.h"

namespace foreload {

namespace {

constexpr unsigned kMostAcBits = 10;
constexpr unsigned kMostDcBits = 11;
constexpr unsigned kEndOfBlock = 0x00;
constexpr unsigned kSixteenZeros = 0xf0;
constexpr std::size_t kLongestCode = 16;

// For each row of a block and each mask of its coefficients: the mask in zigzag order.
using MaskTable = std::array<std::array<std::uint64_t, 256>, 8>;

constexpr MaskTable make_masks() {
  MaskTable masks{};
  for (std::size_t i = 0; i < 64; ++i) {
    const std::size_t row = kJpegZigzag[i] / 8;
    const unsigned bit = 1u << kJpegZigzag[i] % 8;
    for (unsigned mask = 0; mask < 256; ++mask) {
      if (mask & bit) masks[row][mask] |= std::uint64_t{1} << i;
    }
  }
  return masks;
}

constexpr MaskTable kMasks = make_masks();

#if defined(__SSE2__)
// Which coefficients of two rows are not 0.
unsigned nonzero(const std::int16_t* rows) {
  const __m128i zero = _mm_setzero_si128();
  const __m128i first = _mm_cmpeq_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rows)), zero);
  const __m128i second = _mm_cmpeq_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + 8)), zero);
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(first, second))) ^ 0xffffu;
}
#else
unsigned nonzero(const std::int16_t* rows) {
  unsigned mask = 0;
  for (unsigned i = 0; i < 16; ++i) mask |= unsigned{rows[i] != 0} << i;
  return mask;
}
#endif

std::uint64_t zigzag_mask(const std::int16_t* block) {
  std::uint64_t mask = 0;
  for (std::size_t row = 0; row < 8; row += 2) {
    const unsigned rows = nonzero(block + row * 8);
    mask |= kMasks[row][rows & 0xff] | kMasks[row + 1][rows >> 8];
  }
  return mask;
}

unsigned bits_of(int value) {
  return static_cast<unsigned>(std::bit_width(static_cast<unsigned>(std::abs(value))));
}

struct Node {
  std::uint64_t count;
  int parent;
};

// Lengths of the codes of `leaves` nodes with rising counts, which stand first in `nodes`.
void code_lengths(std::span<Node> nodes, std::size_t leaves, std::span<std::uint16_t> lengths) {
  std::size_t leaf = 0;
  std::size_t merged = leaves;
  const auto smallest = [&](std::size_t made) {
    return leaf < leaves && (merged == made || nodes[leaf].count <= nodes[merged].count) ? leaf++ : merged++;
  };
  const std::size_t root = 2 * leaves - 2;
  for (std::size_t made = leaves; made <= root; ++made) {
    const std::size_t a = smallest(made);
    const std::size_t b = smallest(made);
    nodes[made] = {nodes[a].count + nodes[b].count, -1};
    nodes[a].parent = nodes[b].parent = static_cast<int>(made);
  }
  lengths[root] = 0;
  for (std::size_t i = root; i-- > 0;) {
    lengths[i] = static_cast<std::uint16_t>(lengths[static_cast<std::size_t>(nodes[i].parent)] + 1);
  }
}

void shorten(std::span<unsigned> how_many) {
  for (std::size_t length = how_many.size() - 1; length > kLongestCode; --length) {
    while (how_many[length] > 0) {
      std::size_t shorter = length - 2;
      while (how_many[shorter] == 0) --shorter;
      how_many[length] -= 2;
      how_many[length - 1] += 1;
      how_many[shorter + 1] += 2;
      how_many[shorter] -= 1;
    }
  }
}

}  // namespace

void JpegSymbolCounts::add(const std::int16_t* block, int last_dc) {
  const unsigned dc_bits = bits_of(block[0] - last_dc);
  unsigned most_bits = 0;
  std::uint64_t left = zigzag_mask(block) & ~std::uint64_t{1};
  unsigned last = 0;
  for (; left != 0; left &= left - 1) {
    const auto place = static_cast<unsigned>(std::countr_zero(left));
    const unsigned zeros = place - last - 1;
    const unsigned bits = bits_of(block[kJpegZigzag[place]]);
    most_bits = std::max(most_bits, bits);
    ac_[kSixteenZeros] += zeros >> 4;
    ++ac_[(zeros << 4 & 0xf0) | (bits & 15)];
    last = place;
  }
  if (last < 63) ++ac_[kEndOfBlock];
  ++dc_[dc_bits & 15];
  is_codable_ &= most_bits <= kMostAcBits && dc_bits <= kMostDcBits;
}

void JpegSymbolCounts::add_filling() {
  ++dc_[0];
  ++ac_[kEndOfBlock];
}

JpegHuffmanTable optimal_jpeg_table(std::span<const std::uint32_t, 256> counts) {
  std::array<std::uint16_t, 257> symbols;
  std::size_t leaves = 1;
  symbols[0] = 256;  // the one that takes the code of all ones
  for (std::uint16_t symbol = 0; symbol < 256; ++symbol) {
    if (counts[symbol] > 0) symbols[leaves++] = symbol;
  }
  std::sort(symbols.begin() + 1, symbols.begin() + static_cast<std::ptrdiff_t>(leaves),
            [&](std::uint16_t a, std::uint16_t b) { return counts[a] != counts[b] ? counts[a] < counts[b] : a > b; });
  JpegHuffmanTable table;
  if (leaves == 1) return table;
  std::array<Node, 2 * 257> nodes;
  std::array<std::uint16_t, 2 * 257> lengths;
  nodes[0] = {1, -1};
  for (std::size_t i = 1; i < leaves; ++i) nodes[i] = {counts[symbols[i]], -1};
  code_lengths(nodes, leaves, lengths);
  std::array<unsigned, 258> how_many{};
  for (std::size_t i = 0; i < leaves; ++i) ++how_many[lengths[i]];
  shorten(how_many);
  std::size_t longest = kLongestCode;
  while (how_many[longest] == 0) --longest;
  --how_many[longest];
  for (std::size_t i = 1; i <= kLongestCode; ++i) table.bits[i] = static_cast<std::uint8_t>(how_many[i]);
  for (std::size_t i = 1; i < leaves; ++i) table.values[i - 1] = static_cast<std::uint8_t>(symbols[leaves - i]);
  return table;
}

// The lower half of a symbol says how many bits follow, for DC and AC alike.
std::uint64_t jpeg_coded_bits(std::span<const std::uint32_t, 256> counts, const JpegHuffmanTable& table) {
  std::uint64_t sum = 0;
  std::size_t next = 0;
  for (std::size_t length = 1; length <= kLongestCode; ++length) {
    for (unsigned i = 0; i < table.bits[length]; ++i, ++next) {
      const std::size_t symbol = table.values[next];
      sum += counts[symbol] * (length + (symbol & 15));
    }
  }
  return sum;
}

}  // namespace foreload
