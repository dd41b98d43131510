#include "prep/jpeg_huffman.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <queue>
#include <set>
#include <vector>

#include "base/random.h"

namespace foreload {
namespace {

using Counts = std::array<std::uint32_t, 256>;

// Length of each symbol's code; checks that the table is one that JPEG allows.
std::array<unsigned, 256> lengths_of(const JpegHuffmanTable& table, const Counts& counts) {
  std::array<unsigned, 256> lengths{};
  std::set<unsigned> seen;
  std::size_t next = 0;
  std::uint32_t used = 0;  // of the 2^16 codes of 16 bits
  for (unsigned length = 1; length <= 16; ++length) {
    for (unsigned i = 0; i < table.bits[length]; ++i) {
      const unsigned symbol = table.values[next++];
      EXPECT_TRUE(seen.insert(symbol).second) << "symbol " << symbol << " twice";
      lengths[symbol] = length;
      used += 1u << (16 - length);
    }
  }
  EXPECT_LT(used, 1u << 16) << "the code of all ones is not to be used";
  for (std::size_t symbol = 0; symbol < 256; ++symbol) EXPECT_EQ(lengths[symbol] > 0, counts[symbol] > 0) << symbol;
  return lengths;
}

std::uint64_t cost(const std::array<unsigned, 256>& lengths, const Counts& counts) {
  return std::inner_product(lengths.begin(), lengths.end(), counts.begin(), std::uint64_t{0});
}

// The cost of Huffman's code with one more symbol of count 1, less that symbol's own bits.
std::uint64_t least_cost(const Counts& counts) {
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> queue;
  for (const std::uint32_t count : counts) {
    if (count > 0) queue.push(count);
  }
  queue.push(1);
  std::uint64_t sum = 0;
  while (queue.size() > 1) {
    const std::uint64_t a = queue.top();
    queue.pop();
    const std::uint64_t b = queue.top();
    queue.pop();
    sum += a + b;
    queue.push(a + b);
  }
  return sum;
}

TEST(JpegHuffmanTest, CodesAreAsShortAsHuffmans) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    KeyedRandom random(seed, 0, 0, 0);
    Counts counts{};
    const auto symbols = 1 + random.below(200);
    for (std::uint64_t i = 0; i < symbols; ++i) {
      counts[random.below(256)] = static_cast<std::uint32_t>(1 + random.below(100u << random.below(5)));
    }
    const auto table = optimal_jpeg_table(counts);
    const auto lengths = lengths_of(table, counts);
    const unsigned longest = *std::max_element(lengths.begin(), lengths.end());
    // The added symbol has the longest code, or one bit less was needed for another one.
    EXPECT_LE(cost(lengths, counts), least_cost(counts) - longest + 1);
  }
}

TEST(JpegHuffmanTest, NoCodeIsLongerThanSixteenBits) {
  Counts counts{};
  std::uint32_t a = 1;
  std::uint32_t b = 1;
  for (std::size_t i = 0; i < 40; ++i) {
    counts[i * 3] = a;
    a = std::exchange(b, a + b);
  }
  const auto lengths = lengths_of(optimal_jpeg_table(counts), counts);
  EXPECT_EQ(*std::max_element(lengths.begin(), lengths.end()), 16u);
  EXPECT_LE(lengths[39 * 3], 2u);
}

TEST(JpegHuffmanTest, FewSymbolsHaveCodes) {
  Counts counts{};
  lengths_of(optimal_jpeg_table(counts), counts);
  counts[7] = 5;
  EXPECT_EQ(lengths_of(optimal_jpeg_table(counts), counts)[7], 1u);
  counts.fill(1);
  lengths_of(optimal_jpeg_table(counts), counts);
}

TEST(JpegHuffmanTest, SymbolsOfABlockAreCounted) {
  std::array<std::int16_t, 64> block{};
  block[0] = -50;
  block[1] = 3;     // zigzag place 1
  block[16] = -1;   // place 3
  block[62] = 200;  // place 62: 58 zeros before it
  JpegSymbolCounts counts;
  counts.add(block.data(), 14);
  counts.add_filling();
  EXPECT_EQ(counts.dc()[7], 1u);  // -64
  EXPECT_EQ(counts.dc()[0], 1u);
  EXPECT_EQ(counts.ac()[0x02], 1u);
  EXPECT_EQ(counts.ac()[0x11], 1u);
  EXPECT_EQ(counts.ac()[0xf0], 3u);
  EXPECT_EQ(counts.ac()[0xa8], 1u);
  EXPECT_EQ(counts.ac()[0x00], 2u);  // the ends of both
  EXPECT_EQ(std::accumulate(counts.ac().begin(), counts.ac().end(), 0u), 8u);
  EXPECT_TRUE(counts.is_codable());
}

TEST(JpegHuffmanTest, CoefficientsBeyondBaselineAreNoticed) {
  for (const int value : {1023, -1023, 1024, -1024, 32767, -32768}) {
    std::array<std::int16_t, 64> block{};
    block[40] = static_cast<std::int16_t>(value);
    JpegSymbolCounts counts;
    counts.add(block.data(), 0);
    EXPECT_EQ(counts.is_codable(), std::abs(value) < 1024) << value;
  }
  const std::array<std::int16_t, 64> dark{-1024};
  JpegSymbolCounts counts;
  counts.add(dark.data(), 1023);
  EXPECT_TRUE(counts.is_codable());
  counts.add(dark.data(), 1024);
  EXPECT_FALSE(counts.is_codable());
}

TEST(JpegHuffmanTest, CodedBitsAreThoseOfTheCodeAndOfWhatFollows) {
  std::array<std::uint32_t, 256> counts{};
  counts[0x00] = 100;
  counts[0x03] = 10;
  counts[0xf1] = 1;
  // Codes 0, 10 and 110, because 111 is not used.
  EXPECT_EQ(jpeg_coded_bits(counts, optimal_jpeg_table(counts)), 100u * 1 + 10 * (2 + 3) + 1 * (3 + 1));
  EXPECT_EQ(jpeg_coded_bits(std::array<std::uint32_t, 256>{}, {}), 0u);
}

}  // namespace
}  // namespace foreload
