#include "record/convert_plan.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/test_folder.h"
#include "source/tar_writer.h"

namespace foreload {
namespace {

std::unique_ptr<Source> folder_with(const TestFolder& folder, const std::vector<std::size_t>& lengths) {
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    folder.write(fmt::format("a/{:04}.bin", i), std::string(lengths[i], 'x'));
  }
  SourceOptions options;
  options.datasets = {folder.path()};
  options.keep_index = false;
  auto source = open_source(options);
  EXPECT_TRUE(source.ok());
  return *std::move(source);
}

TEST(ConvertPlanTest, EverySampleIsInOneShardAndShardsStayBelowTheSize) {
  const TestFolder folder;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  std::vector<std::size_t> lengths;
  for (int i = 0; i < 200; ++i) lengths.push_back(random() % 9000);
  lengths[50] = 60000;  // larger than a shard: it gets one of its own
  const auto source = folder_with(folder, lengths);
  ConvertOptions options;
  options.shard_bytes = 40000;
  const auto plan = ConvertPlan::make(*source, options);
  ASSERT_TRUE(plan.ok());
  EXPECT_GT(plan->shards(), 20u);
  EXPECT_EQ(plan->first(0), 0u);
  EXPECT_EQ(plan->end(plan->shards() - 1), 200u);
  for (std::uint64_t shard = 0; shard < plan->shards(); ++shard) {
    ASSERT_LT(plan->first(shard), plan->end(shard));
    EXPECT_EQ(plan->first(shard), shard == 0 ? 0 : plan->end(shard - 1));
    Bytes size = 0;
    for (std::uint64_t i = plan->first(shard); i < plan->end(shard); ++i) size += 1536 + tar_padded(lengths[i]);
    EXPECT_TRUE(size <= options.shard_bytes || plan->end(shard) - plan->first(shard) == 1) << shard;
  }
}

TEST(ConvertPlanTest, ShufflingIsAPermutationAndItsSeedIsPartOfTheText) {
  const TestFolder folder;
  const auto source = folder_with(folder, std::vector<std::size_t>(50, 10));
  ConvertOptions options;
  const auto plain = ConvertPlan::make(*source, options);
  options.shuffle_seed = 3;
  const auto shuffled = ConvertPlan::make(*source, options);
  std::set<SampleId> ids;
  std::uint64_t moved = 0;
  for (std::uint64_t place = 0; place < 50; ++place) {
    EXPECT_EQ(plain->sample_at(place), place);
    ids.insert(shuffled->sample_at(place));
    moved += shuffled->sample_at(place) != place ? 1 : 0;
  }
  EXPECT_EQ(ids.size(), 50u);
  EXPECT_GT(moved, 30u);
  EXPECT_NE(plain->text(), shuffled->text());
}

TEST(ConvertPlanTest, ThreadsAndPlaceAreNotPartOfTheTextButFileTimesAre) {
  const TestFolder folder;
  ConvertOptions options;
  const std::string text = ConvertPlan::make(*folder_with(folder, {10, 20}), options)->text();
  options.threads = 7;
  options.destination = "elsewhere";
  EXPECT_EQ(ConvertPlan::make(*folder_with(folder, {}), options)->text(), text);
  std::filesystem::last_write_time(folder.path("a/0001.bin"),
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_NE(ConvertPlan::make(*folder_with(folder, {}), options)->text(), text);
}

TEST(ConvertPlanTest, AbsurdOptionsAreRefused) {
  const TestFolder folder;
  const auto source = folder_with(folder, {10});
  ConvertOptions options;
  options.shard_bytes = 0;
  EXPECT_EQ(ConvertPlan::make(*source, options).error().code, Code::kInvalid);
  options.shard_bytes = 1;
  EXPECT_TRUE(ConvertPlan::make(*source, options).ok());
  for (const std::uint32_t quality : {0u, 101u}) {
    options.quality = quality;
    EXPECT_EQ(ConvertPlan::make(*source, options).error().code, Code::kInvalid);
  }
}

TEST(RecordNamesTest, NoStemStandsInAShardTwice) {
  RecordNames names;
  const std::vector<std::string> keys{"a/x.jpg",   "a/x.png", "a/x.png", "a/x~1.jpg", "a/x~1.png",
                                      "a/x~2.jpg", "a/x.jpg", "b/x.jpg", "x.jpg",     "x.jpg"};
  std::set<std::string> before;
  for (const std::string& key : keys) {
    const auto pair = names.next(key, false);
    ASSERT_TRUE(pair.ok());
    const std::string stem = pair->label.substr(0, pair->label.size() - 4);
    EXPECT_EQ(pair->payload, stem + key.substr(key.rfind('.')));
    EXPECT_EQ(stem.find(key.substr(0, key.rfind('.'))), 0u);
    EXPECT_TRUE(before.insert(stem).second) << stem;
  }
}

TEST(RecordNamesTest, TheSameKeysGetTheSameNames) {
  RecordNames names;
  RecordNames again;
  for (const char* key : {"x.jpg", "y.jpg", "x.png", "y.jpg", "x~1.jpg", "x.jpg"}) {
    const bool as_jpeg = key[0] == 'x';
    EXPECT_EQ(names.next(key, as_jpeg)->label, again.next(key, !as_jpeg)->label) << "only the ending may differ";
  }
}

TEST(RecordNamesTest, AKeyStaysAsItIsWhereItCan) {
  RecordNames names;
  EXPECT_EQ(names.next("c/n01.v2.JPEG", false)->payload, "c/n01.v2.JPEG");
  EXPECT_EQ(names.next("c/n02.v2.JPEG", false)->label, "c/n02.cls");
  EXPECT_EQ(names.next("d.e/n03.png", true)->payload, "d.e/n03.jpg");
  EXPECT_EQ(names.next("d.e/n04.png", false)->label, "d.e/n04.cls");
}

TEST(RecordNamesTest, ATooLongNameIsRefused) {
  RecordNames names;
  const std::string key = std::string(4091, 'x') + ".jpg";  // 4,095 bytes: the longest that a source has
  EXPECT_TRUE(names.next(key, false).ok());
  EXPECT_EQ(names.next(key, false).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace foreload
