// What bench/storage measures with: that it measures what it says.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/test_folder.h"
#include "probe/storage_disk.h"
#include "probe/storage_epochs.h"
#include "probe/storage_page_cache.h"
#include "probe/storage_set.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

TEST(StorageSetTest, DisappearsWithItsObject) {
  const TestFolder top;
  {
    const auto set = StorageSet::make(top.path(), 3);
    ASSERT_TRUE(set.ok()) << set.error().message;
    EXPECT_EQ(std::filesystem::file_size(set->file(2)), StorageSet::kLength);
    EXPECT_TRUE(set->forget().ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(top.path()));
}

TEST(StorageEpochsTest, ACacheOfHalfLeavesHalfToTheSource) {
  const TestFolder top;
  const auto set = StorageSet::make(top.path(), 200);
  ASSERT_TRUE(set.ok()) << set.error().message;
  LoaderOptions options = set->options();
  options.epochs = 2;
  const auto budget = budget_for_cache(options, set->bytes() / 2);
  ASSERT_TRUE(budget.ok()) << budget.error().message;
  options.memory = *budget;
  auto loader = Loader::open(options);
  ASSERT_TRUE(loader.ok()) << loader.error().message;
  const Bytes cached = cached_when_full(*loader, StorageSet::kLength);
  EXPECT_NEAR(static_cast<double>(cached), static_cast<double>(set->bytes()) / 2, 3 * StorageSet::kLength);
  const auto first = run_epoch(*loader, 0ms);
  const auto second = run_epoch(*loader, 0ms);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->source_bytes, set->bytes());
  EXPECT_LE(second->source_bytes, set->bytes() - cached);
  EXPECT_EQ(second->waits.size(), loader->batches_per_epoch());
}

TEST(DiskPathTest, ReadsEverySampleFromTheDisk) {
  const TestFolder top;
  const TestFolder disk;
  const auto set = StorageSet::make(top.path(), 64);
  ASSERT_TRUE(set.ok()) << set.error().message;
  const auto source = open_source({.datasets = {set->samples()}});
  ASSERT_TRUE(source.ok()) << source.error().message;
  for (const bool direct : {false, true}) {
    const auto path = DiskPath::open(**source, {.folder = disk.path(), .direct = direct, .depth = 8});
    ASSERT_TRUE(path.ok()) << path.error().message;
    const auto rate = (*path)->rate(20ms);
    ASSERT_TRUE(rate.ok()) << rate.error().message;
    EXPECT_GT(*rate, 0);
    EXPECT_EQ(std::filesystem::file_size((*path)->data_file()), set->bytes());
  }
}

TEST(PageCacheTest, EveryEpochReadsAllSamples) {
  const TestFolder top;
  const auto set = StorageSet::make(top.path(), 20);
  ASSERT_TRUE(set.ok()) << set.error().message;
  const auto read = read_through_page_cache({.samples = set->samples(), .size = 20, .epochs = 3, .threads = 2});
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->size(), 3u);
  std::filesystem::remove(set->file(7));
  EXPECT_FALSE(read_through_page_cache({.samples = set->samples(), .size = 20, .epochs = 1}).ok());
}

}  // namespace
}  // namespace foreload
