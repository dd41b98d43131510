#include "record/convert.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/test_folder.h"
#include "prep/jpeg_layout.h"
#include "prep/jpeg_samples.h"
#include "record/shrink.h"
#include "source/local_source.h"
#include "source/record_rows.h"
#include "source/records.h"
#include "source/source_testing.h"

namespace foreload {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class ConvertTest : public testing::Test {
 protected:
  ConvertTest() {
    for (unsigned i = 0; i < 6; ++i) {
      folder_.write("src/c" + std::to_string(i / 3) + "/" + std::to_string(i) + ".jpg",
                    text_of(make_jpeg({.width = 400, .height = 300, .quality = 95, .seed = i})));
    }
    folder_.write("src/c1/array.npy", "not looked into");
    options_.source.datasets = {folder_.path("src")};
    options_.destination = folder_.path("out");
    options_.shard_bytes = 200'000;
    options_.threads = 2;
  }

  TestFolder folder_;
  ConvertOptions options_;
};

TEST_F(ConvertTest, TheSideFileTellsWhereTheRowsOfEveryJpegBegin) {
  const auto report = convert_dataset(options_);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->rewritten, 6u);
  EXPECT_EQ(report->copied, 1u);
  const Opening opening = open_at(folder_.path("out"));
  ASSERT_TRUE(opening.result.ok());
  const Source& source = opening.source();
  EXPECT_EQ(opening.progress_calls, 0u) << "the index has to be there";
  const auto rows = RecordRows::open(folder_.path("out/shards.rows"), source.fingerprint());
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  ASSERT_EQ(rows->view().size(), source.size());
  for (SampleId id = 0; id < source.size(); ++id) {
    const auto mine = rows->view().rows(id);
    if (source.key(id).ends_with(".npy")) {
      EXPECT_TRUE(mine.empty());
      continue;
    }
    const std::string bytes = bytes_of(source, id);
    const auto jpeg = std::as_bytes(std::span(bytes));
    const auto layout = parse_jpeg_layout(jpeg);
    ASSERT_TRUE(layout.ok());
    EXPECT_EQ(mine.size(), layout->mcu_rows + 1);
    EXPECT_EQ(mine.front(), layout->scan);
    EXPECT_TRUE(are_jpeg_row_offsets(jpeg, *layout, mine, {0, layout->mcu_rows}));
    EXPECT_EQ(source.dimensions(id)->width, layout->size.width);
  }
}

TEST_F(ConvertTest, ADamagedAccountMakesTheShardAgain) {
  // As after a kill: everything is there but the end.
  std::atomic<std::uint64_t> done{0};
  options_.progress = [&](std::uint64_t samples) { done = samples; };
  options_.stop = [&] { return done >= 6; };
  EXPECT_EQ(convert_dataset(options_).error().code, Code::kCancelled);
  options_.stop = nullptr;
  const std::string account = folder_.path("out/.foreload-convert/shard-000000.tar.json");
  ASSERT_TRUE(fs::exists(account));
  ASSERT_TRUE(fs::exists(folder_.path("out/shard-000000.tar")));
  std::ofstream(account) << "{\"bytes\": 5";
  const auto report = convert_dataset(options_);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_GE(report->made, 2u);  // the first, and what was not reached
  EXPECT_LT(report->made, report->samples);
  EXPECT_FALSE(fs::exists(folder_.path("out/.foreload-convert")));
}

TEST_F(ConvertTest, NothingIsWrittenBesideTheSource) {
  ASSERT_TRUE(convert_dataset(options_).ok());
  EXPECT_TRUE(index_files(folder_.path("src")).empty());
}

TEST_F(ConvertTest, ADamagedManifestIsRefusedByName) {
  ASSERT_TRUE(convert_dataset(options_).ok());
  for (const char* text : {"", "{}", "[]", "{\"shards\": []}", "{\"shards\": [1], \"classes\": [5]}"}) {
    std::ofstream(folder_.path("out/convert.json")) << text;
    const Opening opening = open_at(folder_.path("out"));
    ASSERT_FALSE(opening.result.ok()) << text;
    EXPECT_NE(opening.result.error().message.find("convert.json"), std::string::npos);
    EXPECT_EQ(convert_dataset(options_).error().code, Code::kInvalid) << text;
  }
}

TEST_F(ConvertTest, NothingIsPromisedOfADestinationThatIsGone) {
  options_.progress = [&](std::uint64_t) { fs::remove_all(folder_.path("out")); };
  const auto report = convert_dataset(options_);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().message.find("are kept"), std::string::npos) << report.error().message;
  EXPECT_NE(report.error().message.find("removed or renamed"), std::string::npos) << report.error().message;
}

TEST_F(ConvertTest, ATarThatIsCutMeanwhileNeedsNoIndexButAnotherFolder) {
  ASSERT_TRUE(convert_dataset(options_).ok());
  options_.source.datasets = {folder_.path("out/shard-000000.tar")};
  options_.destination = folder_.path("again");
  options_.planned = [&](std::uint64_t) { fs::resize_file(folder_.path("out/shard-000000.tar"), 2000); };
  const auto report = convert_dataset(options_);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kDataChanged);
  EXPECT_EQ(report.error().message.find("rebuild"), std::string::npos) << report.error().message;
  EXPECT_NE(report.error().message.find("new folder"), std::string::npos) << report.error().message;
}

TEST_F(ConvertTest, AnAccountOfAnotherShardIsNotTaken) {
  std::atomic<std::uint64_t> done{0};
  options_.progress = [&](std::uint64_t samples) { done = samples; };
  options_.stop = [&] { return done >= 6; };
  EXPECT_EQ(convert_dataset(options_).error().code, Code::kCancelled);
  options_.stop = nullptr;
  const std::string work = folder_.path("out/.foreload-convert/");
  ASSERT_TRUE(fs::exists(work + "shard-000001.tar.json"));
  for (const char* end : {"", ".json", ".rows"}) {
    const std::string from = end[0] == '\0' ? folder_.path("out/") : work;
    fs::copy_file(from + "shard-000001.tar" + end, from + "shard-000000.tar" + end,
                  fs::copy_options::overwrite_existing);
  }
  const auto report = convert_dataset(options_);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->samples, open_at(folder_.path("out")).source().size());
}

TEST_F(ConvertTest, APathWithSpecialCharactersIsNoPattern) {
  options_.destination = folder_.path("o[u]t{1,2}*");
  ASSERT_TRUE(convert_dataset(options_).ok());
  EXPECT_TRUE(open_at(options_.destination).result.ok());
}

TEST(ShrinkTest, TheLongerSideFitsAndTheShapeStays) {
  const auto expect = [](Dimensions from, std::uint32_t side, Dimensions to) {
    const Dimensions got = shrunk_size(from, side);
    EXPECT_EQ(got.width, to.width);
    EXPECT_EQ(got.height, to.height);
  };
  expect({500, 375}, 500, {500, 375});
  expect({500, 375}, 200, {200, 150});
  expect({375, 500}, 200, {150, 200});
  expect({65500, 1}, 100, {100, 1});
  expect({3, 65500}, 1, {1, 1});
}

}  // namespace
}  // namespace foreload
