#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace foreload {
namespace {

// kat_vectors of Random123 1.x, "philox4x32 10".
TEST(PhiloxTest, MatchesThePublishedKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::vector<std::uint32_t> first_numbers(std::uint64_t seed, Epoch epoch, Position position, std::uint32_t op) {
  KeyedRandom random(seed, epoch, position, op);
  std::vector<std::uint32_t> numbers;
  for (int i = 0; i < 6; ++i) numbers.push_back(random.next_u32());
  return numbers;
}

// Golden: a change here changes every augmentation of every dataset.
TEST(KeyedRandomTest, StreamsAreTheSameInEveryRelease) {
  EXPECT_EQ(first_numbers(0, 0, 0, 0),
            (std::vector<std::uint32_t>{0x6a5c37c8, 0xdf974b5c, 0x2d334caf, 0x3745f034, 0xe193a5fa, 0x20b57746}));
  EXPECT_EQ(first_numbers(7, 3, 1234567, 2),
            (std::vector<std::uint32_t>{0x83e85c61, 0x4217151f, 0xf9b2b6ba, 0x40992a90, 0x05923ef8, 0xfdc620ec}));
  EXPECT_EQ(first_numbers(~0ull, ~0ull, ~0ull, ~0u),
            (std::vector<std::uint32_t>{0x17aed9ad, 0x54256d81, 0xfb91aa19, 0xae14ef46, 0x4b7eaeb5, 0x78f575c7}));
}

TEST(KeyedRandomTest, EveryPartOfTheKeyChangesTheStream) {
  std::set<std::vector<std::uint32_t>> streams;
  unsigned expected = 0;
  for (const std::uint64_t value : {0ull, 1ull, 2ull, 0xffffffffull, 1ull << 32, 1ull << 63}) {
    streams.insert(first_numbers(value, 9, 9, 9));
    streams.insert(first_numbers(9, value, 9, 9));
    streams.insert(first_numbers(9, 9, value, 9));
    expected += 3;
  }
  for (const std::uint32_t op : {0u, 1u, 2u, 0xffffffffu}) {
    streams.insert(first_numbers(9, 9, 9, op));
    ++expected;
  }
  EXPECT_EQ(streams.size(), expected);
}

TEST(KeyedRandomTest, U64IsTwoU32LowHalfFirst) {
  KeyedRandom words(1, 2, 3, 4);
  KeyedRandom pairs(1, 2, 3, 4);
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t low = words.next_u32();
    const std::uint64_t high = words.next_u32();
    EXPECT_EQ(pairs.next_u64(), low | high << 32);
  }
}

TEST(KeyedRandomTest, BelowStaysBelowAndReachesEverything) {
  KeyedRandom random(5, 0, 0, 0);
  for (const std::uint64_t bound : {1ull, 2ull, 3ull, 7ull}) {
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 500; ++i) seen.insert(random.below(bound));
    EXPECT_EQ(seen.size(), bound);
    EXPECT_LT(*seen.rbegin(), bound);
  }
}

// 3 · 2^62: without rejection, multiples of 3 would come up twice as often as the others.
TEST(KeyedRandomTest, BelowIsUnbiasedForHugeBounds) {
  constexpr std::uint64_t kBound = 3ull << 62;
  constexpr int kDraws = 30'000;
  KeyedRandom random(11, 0, 0, 0);
  std::array<int, 3> thirds{};
  for (int i = 0; i < kDraws; ++i) ++thirds[random.below(kBound) % 3];
  for (const int count : thirds) EXPECT_NEAR(count, kDraws / 3, 5 * std::sqrt(kDraws * 2.0 / 9.0));
}

// Chi-squared over 64 cells, of consecutive positions' first numbers: 63 ± 5 sigma.
TEST(KeyedRandomTest, FirstNumbersOfConsecutivePositionsAreUniform) {
  constexpr int kDraws = 64'000;
  std::array<int, 64> cells{};
  for (Position position = 0; position < kDraws; ++position) ++cells[KeyedRandom(1, 0, position, 0).next_u32() >> 26];
  double chi_squared = 0;
  for (const int count : cells) chi_squared += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_squared, 63 + 5 * std::sqrt(2 * 63.0));
}

TEST(Mix64Test, IsTheFinaliserOfMurmur3) {
  EXPECT_EQ(mix64(0), 0u);
  EXPECT_EQ(mix64(1), 0xb456bcfc34c2cb2cull);
}

}  // namespace
}  // namespace foreload
