#include "base/region.h"

#include <gtest/gtest.h>

#include <utility>

namespace foreload {
namespace {

TEST(RegionTest, IsZeroedWritableAndPageAligned) {
  const auto region = Region::map(10'000, "a test");
  ASSERT_TRUE(region.ok());
  EXPECT_EQ(region->bytes().size(), 10'000u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(region->bytes().data()) % 4096, 0u);
  EXPECT_EQ(region->bytes()[9'999], std::byte{0});
  region->bytes()[9'999] = std::byte{7};
}

TEST(RegionTest, CostsNothingUntilTouched) {
  const auto region = Region::map(1ull << 40, "a test");
  ASSERT_TRUE(region.ok());
  region->bytes()[1ull << 39] = std::byte{1};
}

TEST(RegionTest, NothingIsARegionToo) {
  const auto region = Region::map(0, "a test");
  ASSERT_TRUE(region.ok());
  EXPECT_TRUE(region->bytes().empty());
}

TEST(RegionTest, AnImpossibleSizeIsRefusedWithNumberAndPurpose) {
  const auto region = Region::map(1ull << 60, "the sample cache");
  ASSERT_FALSE(region.ok());
  EXPECT_EQ(region.error().code, Code::kNoMemory);
  EXPECT_NE(region.error().message.find("1152921504606846976"), std::string::npos);
  EXPECT_NE(region.error().message.find("the sample cache"), std::string::npos);
}

TEST(RegionTest, MovingKeepsTheMemory) {
  auto first = Region::map(4096, "a test");
  auto second = Region::map(8192, "a test");
  ASSERT_TRUE(first.ok() && second.ok());
  first->bytes()[1] = std::byte{5};
  const std::byte* const data = first->bytes().data();
  *second = std::move(*first);
  EXPECT_EQ(second->bytes().data(), data);
  EXPECT_EQ(second->bytes()[1], std::byte{5});
  EXPECT_TRUE(first->bytes().empty());
}

}  // namespace
}  // namespace foreload
