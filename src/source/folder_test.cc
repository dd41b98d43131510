#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "source/source_testing.h"

namespace foreload {
namespace {

namespace fs = std::filesystem;

using Strings = std::vector<std::string>;
using Labels = std::vector<std::int64_t>;

TEST(FolderTest, ClassesAndFilesStandInTheOrderOfImageFolder) {
  const TestFolder folder;
  // sorted(os.walk(…)) compares whole paths: "b", "b/a", "b/a-x", "b/a/z"; upper case before lower case.
  for (const char* name : {"b/z.jpg", "b/a/2.jpg", "b/a-x/1.jpg", "b/a/z/0.jpg", "b/A.jpg", "B/x.jpg", "a10/x.jpg",
                           "a9/x.jpg", "a/é.png"}) {
    folder.write(name, name);
  }
  const Opening opening = open_at(folder.path());
  ASSERT_TRUE(opening.result.ok()) << opening.result.error().message;
  EXPECT_EQ(keys_of(opening.source()), (Strings{"B/x.jpg", "a/é.png", "a10/x.jpg", "a9/x.jpg", "b/A.jpg", "b/z.jpg",
                                                "b/a/2.jpg", "b/a-x/1.jpg", "b/a/z/0.jpg"}));
  EXPECT_EQ(labels_of(opening.source()), (Labels{0, 1, 2, 3, 4, 4, 4, 4, 4}));
  EXPECT_EQ(opening.source().classes(), (Strings{"B", "a", "a10", "a9", "b"}));
  EXPECT_TRUE(opening.warnings.empty());
  for (SampleId id = 0; id < opening.source().size(); ++id) {
    EXPECT_EQ(bytes_of(opening.source(), id), opening.source().key(id));
    EXPECT_EQ(opening.source().locate(id).file, id);
    EXPECT_FALSE(opening.source().locate(id).shared);
  }
}

TEST(FolderTest, AFlatFolderHasNoLabels) {
  const TestFolder folder;
  for (const char* name : {"2.npy", "10.jpg", "1.JPEG", "a.bin", "b.raw", "c.Png"}) folder.write(name, "123");
  const Opening opening = open_at(folder.path());
  ASSERT_TRUE(opening.result.ok()) << opening.result.error().message;
  EXPECT_EQ(keys_of(opening.source()), (Strings{"1.JPEG", "10.jpg", "2.npy", "a.bin", "b.raw", "c.Png"}));
  EXPECT_EQ(labels_of(opening.source()), Labels(6, kNoLabel));
  EXPECT_TRUE(opening.source().classes().empty());
  EXPECT_EQ(opening.source().total_bytes(), 18u);
}

TEST(FolderTest, FilesBesideClassesAreIgnoredWithOneWarning) {
  const TestFolder folder;
  for (const char* name : {"cat/1.jpg", "dog/1.jpg", "stray.jpg", "another.png"}) folder.write(name, "x");
  const Opening opening = open_at(folder.path());
  EXPECT_EQ(keys_of(opening.source()), (Strings{"cat/1.jpg", "dog/1.jpg"}));
  ASSERT_EQ(opening.warnings.size(), 1u);
  EXPECT_TRUE(opening.warned_of("2 files beside the class folders ignored: first is another.png"))
      << opening.warnings[0];
}

TEST(FolderTest, OtherExtensionsAreIgnoredAndCountedAndHiddenOnesAreNot) {
  const TestFolder folder;
  for (const char* name : {"a/1.jpg", "a/2.txt", "b/labels.csv", "b/1.jpg", "a/noextension", "a/.hidden.jpg",
                           ".cache/1.jpg", "b/.x/1.jpg"}) {
    folder.write(name, "x");
  }
  const Opening opening = open_at(folder.path());
  EXPECT_EQ(keys_of(opening.source()), (Strings{"a/1.jpg", "b/1.jpg"}));
  ASSERT_EQ(opening.warnings.size(), 1u);
  EXPECT_TRUE(opening.warned_of("3 files ignored")) << opening.warnings[0];
}

TEST(FolderTest, AFolderGivenOneLevelTooHighIsDoubted) {
  const auto warnings = [](const Strings& names) {
    const TestFolder folder;
    for (const std::string& name : names) folder.write(name, "x");
    const Opening cold = open_at(folder.path());
    EXPECT_EQ(open_at(folder.path()).warnings, cold.warnings);
    return cold.warnings.empty() ? "" : cold.warnings[0].substr(folder.path().size() + 2);
  };
  EXPECT_EQ(warnings({"train/cat/1.jpg", "train/dog/1.jpg"}), "1 class holds all samples: is its folder train meant?");
  EXPECT_EQ(warnings({"images/1.jpg", "images/2.jpg"}), "1 class holds all samples: is its folder images meant?");
  EXPECT_EQ(warnings({"train/cat/1.jpg", "train/dog/1.jpg", "val/cat/1.jpg", "val/dog/1.jpg"}),
            "all 2 classes hold folders and no files: is one of them meant, as train?");
  EXPECT_EQ(warnings({"cat/1.jpg", "dog/1.jpg"}), "");
  EXPECT_EQ(warnings({"cat/images/1.jpg", "dog/images/1.jpg"}), "");
  EXPECT_EQ(warnings({"cat/a/1.jpg", "cat/b/1.jpg", "dog/1.jpg"}), "");
  EXPECT_EQ(warnings({"1.jpg", "2.jpg"}), "");
}

TEST(FolderTest, AnEmptyClassKeepsItsRank) {
  const TestFolder folder;
  fs::create_directory(folder.path("b"));
  for (const char* name : {"a/1.jpg", "c/1.jpg"}) folder.write(name, "x");
  const Opening opening = open_at(folder.path());
  EXPECT_EQ(labels_of(opening.source()), (Labels{0, 2}));
  EXPECT_EQ(opening.source().classes(), (Strings{"a", "b", "c"}));
  EXPECT_TRUE(opening.warned_of("1 class folder without samples: b"));
}

TEST(FolderTest, AZeroByteFileIsASample) {
  const TestFolder folder;
  folder.write("a/empty.jpg", "");
  const Opening opening = open_at(folder.path());
  ASSERT_TRUE(opening.result.ok());
  EXPECT_EQ(opening.source().size(), 1u);
  EXPECT_EQ(opening.source().length(0), 0u);
}

TEST(FolderTest, LinksInsideAreFollowed) {
  const TestFolder folder;
  folder.write("a/1.jpg", "one");
  fs::create_symlink("1.jpg", folder.path("a/2.jpg"));
  fs::create_directory_symlink("a", folder.path("b"));
  const Opening opening = open_at(folder.path());
  ASSERT_TRUE(opening.result.ok()) << opening.result.error().message;
  EXPECT_EQ(keys_of(opening.source()), (Strings{"a/1.jpg", "a/2.jpg", "b/1.jpg", "b/2.jpg"}));
  for (SampleId id = 0; id < 4; ++id) EXPECT_EQ(bytes_of(opening.source(), id), "one");
  EXPECT_EQ(opening.source().length(1), 3u);
}

TEST(FolderTest, LinksToTheOutsideAreRefusedAndNothingThereIsOpened) {
  const TestFolder outside;
  outside.write("secret.jpg", "secret");
  outside.write("more/secret.jpg", "secret");
  const TestFolder folder;
  folder.write("a/1.jpg", "one");
  folder.write("c/1.jpg", "one");
  fs::create_symlink(outside.path("secret.jpg"), folder.path("a/2.jpg"));
  fs::create_symlink("../../" + fs::path(outside.path()).filename().string() + "/secret.jpg", folder.path("a/3.jpg"));
  fs::create_directory_symlink(outside.path("more"), folder.path("b"));
  fs::create_symlink("/dev/zero", folder.path("a/4.jpg"));
  const Opening opening = open_at(folder.path());
  ASSERT_TRUE(opening.result.ok()) << opening.result.error().message;
  EXPECT_EQ(keys_of(opening.source()), (Strings{"a/1.jpg", "c/1.jpg"}));
  EXPECT_EQ(opening.source().classes(), (Strings{"a", "c"}));
  ASSERT_EQ(opening.warnings.size(), 1u);
  EXPECT_TRUE(opening.warned_of("4 links refused because they lead outside of the dataset: first is a/2.jpg"));
}

TEST(FolderTest, OnlyLinksToTheOutsideIsAnError) {
  const TestFolder outside;
  outside.write("1.jpg", "x");
  const TestFolder folder;
  fs::create_symlink(outside.path("1.jpg"), folder.path("1.jpg"));
  const Opening opening = open_at(folder.path());
  ASSERT_FALSE(opening.result.ok());
  EXPECT_NE(opening.result.error().message.find("1 link refused"), std::string::npos);
  EXPECT_TRUE(index_files(folder.path()).empty());
}

TEST(FolderTest, BrokenLinksLoopsAndSpecialFilesAreSkipped) {
  const TestFolder folder;
  folder.write("a/1.jpg", "x");
  fs::create_symlink("nothing.jpg", folder.path("a/2.jpg"));
  fs::create_symlink("4.jpg", folder.path("a/3.jpg"));
  fs::create_symlink("3.jpg", folder.path("a/4.jpg"));
  fs::create_directory_symlink("..", folder.path("a/up"));
  fs::create_directory_symlink(".", folder.path("self"));
  fs::create_directories(folder.path("a/deep"));
  fs::create_directory_symlink("../../a", folder.path("a/deep/again"));
  ASSERT_EQ(mkfifo(folder.path("a/pipe.jpg").c_str(), 0600), 0);
  fs::create_symlink("pipe.jpg", folder.path("a/pipe2.jpg"));
  const Opening opening = open_at(folder.path());
  ASSERT_TRUE(opening.result.ok()) << opening.result.error().message;
  EXPECT_EQ(keys_of(opening.source()), (Strings{"a/1.jpg"}));
  EXPECT_EQ(opening.source().classes(), (Strings{"a"}));
  EXPECT_TRUE(opening.warned_of("3 links skipped because they lead nowhere: first is a/2.jpg"));
  EXPECT_TRUE(
      opening.warned_of("3 links skipped because they lead back to a folder around them: first is a/deep/again"));
  EXPECT_TRUE(opening.warned_of("2 devices, pipes and sockets skipped: first is a/pipe.jpg"));
}

TEST(FolderTest, PathsThatAreTooLongAreSkippedWithAWarning) {
  const TestFolder folder;
  folder.write("a/1.jpg", "x");
  // Deeper than one path can say: made step by step.
  auto here = open_directory(folder.path("a"));
  const std::string name(250, 'n');
  for (int depth = 0; depth < 17; ++depth) {
    ASSERT_EQ(mkdirat(here->get(), name.c_str(), 0755), 0);
    here = Descriptor(openat(here->get(), name.c_str(), O_RDONLY | O_DIRECTORY));
    ASSERT_TRUE(here->valid());
    Descriptor file(openat(here->get(), "x.jpg", O_WRONLY | O_CREAT, 0644));
    ASSERT_TRUE(file.valid());
  }
  const Opening opening = open_at(folder.path());
  ASSERT_TRUE(opening.result.ok()) << opening.result.error().message;
  EXPECT_EQ(opening.source().size(), 17u);
  EXPECT_TRUE(opening.warned_of("1 entry skipped because its path is too long"));
  EXPECT_EQ(bytes_of(opening.source(), 16), "");
  run("rm -rf " + folder.path("a"));  // std::filesystem can not remove such depths
}

TEST(FolderTest, TooDeepNestingIsSkipped) {
  const TestFolder folder;
  std::string path = "a";
  for (int depth = 0; depth < 110; ++depth) path += "/d";
  folder.write(path + "/lost.jpg", "x");
  folder.write("a/1.jpg", "x");
  const Opening opening = open_at(folder.path());
  ASSERT_TRUE(opening.result.ok());
  EXPECT_EQ(opening.source().size(), 1u);
  EXPECT_TRUE(opening.warned_of("nested too deeply"));
}

TEST(FolderTest, AnEmptyFolderIsAnErrorThatSaysWhatWasLookedFor) {
  const TestFolder folder;
  folder.write("a/readme.txt", "x");
  folder.write("list.csv", "x");
  const Opening opening = open_at(folder.path());
  ASSERT_FALSE(opening.result.ok());
  EXPECT_EQ(opening.result.error().code, Code::kNotFound);
  const std::string& message = opening.result.error().message;
  EXPECT_NE(message.find(folder.path()), std::string::npos) << message;
  EXPECT_NE(message.find(".jpg .jpeg .png .webp .npy .bin .raw"), std::string::npos) << message;
  EXPECT_NE(message.find("2 files with other extensions were ignored"), std::string::npos) << message;
  EXPECT_TRUE(index_files(folder.path()).empty());
}

// Root may read everything, so this runs as somebody else in a process of its own.
int open_as_nobody(const std::string& path) {
  if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) return 2;
  const Opening opening = open_at(path);
  if (opening.result.ok()) return 1;
  const bool is_clear = opening.result.error().message.find("/locked: Permission denied") != std::string::npos;
  return is_clear && opening.result.error().code == Code::kIo ? 0 : 3;
}

TEST(FolderDeathTest, AFolderThatCanNotBeReadIsAnErrorThatNamesIt) {
  GTEST_FLAG_SET(death_test_style, "fast");
  const TestFolder folder;
  folder.write("a/1.jpg", "x");
  folder.write("a/locked/1.jpg", "x");
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(folder.path("a/locked").c_str(), 0), 0);
  EXPECT_EXIT(_exit(open_as_nobody(folder.path())), ::testing::ExitedWithCode(0), "");
  ASSERT_EQ(chmod(folder.path("a/locked").c_str(), 0755), 0);
}

TEST(FolderTest, ManyThreadsAndOneGiveTheSameIndex) {
  const TestFolder folder;
  for (int i = 0; i < 60; ++i) {
    for (int k = 0; k < 30; ++k) {
      folder.write("c" + std::to_string(i) + "/" + std::to_string(k * 7) + (k % 9 == 0 ? ".txt" : ".jpg"), "xyz");
    }
  }
  SourceOptions options;
  options.datasets = {folder.path()};
  options.rebuild_index = true;
  options.threads = 1;
  const Opening one = open_with(options);
  options.threads = 8;
  const Opening many = open_with(options);
  EXPECT_EQ(one.source().fingerprint(), many.source().fingerprint());
  EXPECT_EQ(keys_of(one.source()), keys_of(many.source()));
  EXPECT_EQ(one.warnings, many.warnings);
  EXPECT_GT(one.progress_calls, 0u);
}

}  // namespace
}  // namespace foreload
