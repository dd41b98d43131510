#include "prep/fixed_point.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace foreload {
namespace {

TEST(FixedPointTest, RootIsTheLargestWhoseSquareFits) {
  KeyedRandom random(5, 0, 0, 0);
  for (int i = 0; i < 2000; ++i) {
    const Uint128 x = (Uint128{random.next_u64()} << 64 | random.next_u64()) >> random.below(128);
    const Uint128 root = isqrt(x);
    EXPECT_TRUE(root * root <= x);
    EXPECT_TRUE(root == UINT64_MAX || (root + 1) * (root + 1) > x);
  }
  EXPECT_EQ(isqrt(0), 0u);
  EXPECT_EQ(isqrt(~Uint128{0}), UINT64_MAX);
}

TEST(FixedPointTest, PowersOfTwoAreExact) {
  for (std::int64_t whole = -32; whole < 29; ++whole) {
    EXPECT_EQ(exp2_q32(whole * static_cast<std::int64_t>(kOneQ32)), 1ull << (32 + whole));
    EXPECT_EQ(log2_q32(1ull << (32 + whole)), whole * static_cast<std::int64_t>(kOneQ32));
  }
}

TEST(FixedPointTest, CloseToTheRealFunctions) {
  KeyedRandom random(6, 0, 0, 0);
  for (int i = 0; i < 5000; ++i) {
    const auto x = static_cast<std::int64_t>(random.below(16 * kOneQ32)) - static_cast<std::int64_t>(8 * kOneQ32);
    const double real = std::exp2(static_cast<double>(x) / 4294967296.0) * 4294967296.0;
    EXPECT_NEAR(static_cast<double>(exp2_q32(x)), real, 1.0 + real * 1e-12);
    const std::uint64_t y = 1 + random.next_u64() % (256 * kOneQ32);
    EXPECT_NEAR(static_cast<double>(log2_q32(y)), std::log2(static_cast<double>(y) / 4294967296.0) * 4294967296.0, 1.1);
  }
}

// The same numbers on every machine and compiler: crops depend on them.
TEST(FixedPointTest, GoldenVectors) {
  EXPECT_EQ(exp2_q32(0x80000000), 6074001000u);  // sqrt(2) · 2^32
  EXPECT_EQ(exp2_q32(-0x80000000ll), 3037000500u);
  EXPECT_EQ(exp2_q32(0x12345678), 4511972445u);
  EXPECT_EQ(exp2_q32(-0x6a09e667ll), 3223065671u);
  EXPECT_EQ(log2_q32(to_q32(3.0 / 4.0)), -1782572487);
  EXPECT_EQ(log2_q32(to_q32(4.0 / 3.0)), 1782572485);
  EXPECT_EQ(between_q32(-10, 10, 0x80000000), 0);
  EXPECT_EQ(between_q32(-10, 10, 0xffffffff), 9);
}

}  // namespace
}  // namespace foreload
