#include "probe/generated_dataset.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/files.h"
#include "base/hash.h"
#include "base/test_folder.h"

namespace foreload {
namespace {

namespace fs = std::filesystem;

class GenerateTest : public testing::Test {
 protected:
  GenerateOptions options(const std::string& name) const {
    GenerateOptions options;
    options.folder = top_.path(name);
    options.images = 6;
    options.classes = 3;
    options.seed = 5;
    return options;
  }

  // Path below the folder → hash of the content.
  static std::map<std::string, std::uint64_t> files_of(const std::string& folder) {
    std::map<std::string, std::uint64_t> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      const std::string content = read_whole_file(entry.path().string(), 1_GiB).value();
      files[fs::relative(entry.path(), folder).string()] = hash_bytes(std::as_bytes(std::span(content)));
    }
    return files;
  }

  TestFolder top_;
};

TEST_F(GenerateTest, WritesTheImagesIntoClassFolders) {
  const auto report = generate_dataset(options("set"));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->images, 6u);
  EXPECT_EQ(report->made, 6u);
  const auto files = files_of(top_.path("set"));
  EXPECT_EQ(files.size(), 7u);  // and the marker
  EXPECT_EQ(files.count("class_00000/00000001.jpg"), 1u);
  EXPECT_EQ(files.count("class_00002/00000005.jpg"), 1u);
}

TEST_F(GenerateTest, AnyNumberOfThreadsWritesTheSame) {
  GenerateOptions one = options("one"), three = options("three");
  one.threads = 1;
  three.threads = 3;
  ASSERT_TRUE(generate_dataset(one));
  ASSERT_TRUE(generate_dataset(three));
  EXPECT_EQ(files_of(one.folder), files_of(three.folder));
}

TEST_F(GenerateTest, AnInterruptedRunIsContinued) {
  ASSERT_TRUE(generate_dataset(options("whole")));
  GenerateOptions broken = options("broken");
  std::atomic<int> asked{0};
  broken.stop = [&] { return ++asked > 2; };
  const auto stopped = generate_dataset(broken);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::kCancelled);
  std::ofstream(broken.folder + "/class_00000/00000000.jpg.1-0.tmp") << "half";

  const auto report = generate_dataset(options("broken"));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->made, 4u);
  EXPECT_EQ(files_of(broken.folder), files_of(top_.path("whole")));
}

TEST_F(GenerateTest, ACompleteFolderIsLeftAsItIs) {
  const auto first = generate_dataset(options("set"));
  const auto second = generate_dataset(options("set"));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->made, 0u);
  EXPECT_EQ(second->bytes, first->bytes);
}

TEST_F(GenerateTest, OtherOptionsAreRefusedForTheSameFolder) {
  ASSERT_TRUE(generate_dataset(options("set")));
  const auto before = files_of(top_.path("set"));
  GenerateOptions other = options("set");
  other.seed = 6;
  const auto report = generate_dataset(other);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kInvalid);
  EXPECT_NE(report.error().message.find("\"seed\": 6"), std::string::npos) << report.error().message;
  EXPECT_EQ(files_of(top_.path("set")), before);
}

TEST_F(GenerateTest, AFolderWithOtherThingsIsRefused) {
  fs::create_directories(top_.path("mine"));
  std::ofstream(top_.path("mine/thesis.tex")) << "years of work";
  const auto report = generate_dataset(options("mine"));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kInvalid);
  EXPECT_EQ(files_of(top_.path("mine")).size(), 1u);
}

TEST_F(GenerateTest, AFolderInUseIsRefused) {
  fs::create_directories(top_.path("busy"));
  const auto lock = open_directory(top_.path("busy"));
  ASSERT_EQ(flock(lock->get(), LOCK_EX), 0);
  const auto report = generate_dataset(options("busy"));
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("another process"), std::string::npos) << report.error().message;
}

TEST_F(GenerateTest, ImpossibleCountsAreRefusedBeforeAnythingIsWritten) {
  GenerateOptions none = options("none"), crowded = options("crowded");
  none.images = 0;
  crowded.classes = 7;
  for (const GenerateOptions& bad : {none, crowded}) {
    const auto report = generate_dataset(bad);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, Code::kInvalid);
    EXPECT_FALSE(fs::exists(bad.folder));
  }
}

TEST_F(GenerateTest, ShardsHoldTheSameImages) {
  GenerateOptions tars = options("tars");
  tars.shard_images = 4;
  ASSERT_TRUE(generate_dataset(options("files")));
  ASSERT_TRUE(generate_dataset(tars));
  const std::string out = top_.path("unpacked");
  fs::create_directories(out);
  // Two shards, unpacked by the system's tar: an opinion that is not ours.
  for (int shard = 0; shard < 2; ++shard) {
    const std::string command = fmt::format("tar -xf {}/shard-{:06}.tar -C {}", tars.folder, shard, out);
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  auto expected = files_of(top_.path("files"));
  expected.erase(".foreload-generated.json");
  auto unpacked = files_of(out);
  EXPECT_EQ(unpacked.size(), 12u);
  for (const auto& [path, hash] : expected) EXPECT_EQ(unpacked[path], hash) << path;
  EXPECT_EQ(read_whole_file(out + "/class_00002/00000005.cls", 10).value(), "2");
}

}  // namespace
}  // namespace foreload
