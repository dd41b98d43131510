#include "tier/disk_table.h"

#include <gtest/gtest.h>

#include <cstring>

namespace foreload {
namespace {

constexpr std::uint64_t kSamples = 50;
constexpr Bytes kLength = 100;

DiskSamples samples(std::int64_t mtime = 1) {
  return {.count = kSamples,
          .fingerprint = 77,
          .length = [](SampleId) { return kLength; },
          .stamp =
              [mtime](SampleId) {
                return FileStamp{kLength, mtime};
              }};
}

TEST(DiskTableTest, EveryFlippedBitOfAnEntryIsFound) {
  DiskTable table(samples(), kSamples * kLength);
  const DiskEntry good = table.entry_for(3, 200, 0x123456789abcdef);
  for (std::size_t bit = 0; bit < sizeof(DiskEntry) * 8; ++bit) {
    DiskEntry bad = good;
    reinterpret_cast<unsigned char*>(&bad)[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
    EXPECT_EQ(table.load(3, bad), LoadedEntry::kDamaged) << "bit " << bit;
  }
  EXPECT_EQ(table.load(3, good), LoadedEntry::kTaken);
}

TEST(DiskTableTest, AnEntryCountsOnlyForItsSampleItsDatasetAndTheFileAsItWas) {
  DiskTable table(samples(), kSamples * kLength);
  const DiskEntry entry = table.entry_for(3, 200, 9);
  EXPECT_EQ(table.load(4, entry), LoadedEntry::kDamaged);
  DiskTable touched(samples(2), kSamples * kLength);
  EXPECT_EQ(touched.load(3, entry), LoadedEntry::kOutdated);
  EXPECT_FALSE(touched.has(3));
  DiskSamples other = samples();
  other.fingerprint = 78;
  EXPECT_EQ(DiskTable(other, kSamples * kLength).load(3, entry), LoadedEntry::kDamaged);
  EXPECT_EQ(DiskTable(samples(), 299).load(3, entry), LoadedEntry::kBeyond);
}

TEST(DiskTableTest, OfEntriesThatOverlapOneStays) {
  DiskTable table(samples(), kSamples * kLength);
  const Bytes offsets[] = {0, 99, 100, 150, 1000, 1000};
  for (SampleId id = 0; id < 6; ++id) {
    ASSERT_EQ(table.load(id, table.entry_for(id, offsets[id], id)), LoadedEntry::kTaken);
  }
  EXPECT_EQ(table.settle(), 3u);
  EXPECT_TRUE(table.has(0));
  EXPECT_FALSE(table.has(1));
  EXPECT_TRUE(table.has(2));
  EXPECT_FALSE(table.has(3));
  EXPECT_NE(table.has(4), table.has(5));
  EXPECT_EQ(table.used_bytes(), 300u);
  EXPECT_EQ(table.used_bytes() + table.free_bytes(), kSamples * kLength);
}

TEST(DiskTableTest, HeadersOfOthersAreToldFromDamagedOnes) {
  const auto judge = [](const DiskHeader& header) {
    return judge_disk_header(std::as_bytes(std::span(&header, 1)), 77, kSamples);
  };
  const DiskHeader good = make_disk_header(77, kSamples);
  EXPECT_EQ(judge(good), HeaderKind::kOurs);
  EXPECT_EQ(judge(make_disk_header(78, kSamples)), HeaderKind::kForeign);
  EXPECT_EQ(judge(make_disk_header(77, kSamples + 1)), HeaderKind::kForeign);
  DiskHeader newer = good;
  newer.version = 2;
  EXPECT_EQ(judge(newer), HeaderKind::kForeign);
  EXPECT_EQ(judge_disk_header({}, 77, kSamples), HeaderKind::kDamaged);
  for (std::size_t bit = 0; bit < sizeof(DiskHeader) * 8; ++bit) {
    DiskHeader bad = good;
    reinterpret_cast<unsigned char*>(&bad)[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
    EXPECT_NE(judge(bad), HeaderKind::kOurs) << "bit " << bit;
  }
}

}  // namespace
}  // namespace foreload
