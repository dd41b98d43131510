#include "source/index_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "source/local_source.h"
#include "source/source_testing.h"

namespace foreload {
namespace {

namespace fs = std::filesystem;

using Strings = std::vector<std::string>;

// Longer than the clock of the file system needs to move on.
void wait_a_tick() {
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
}

// Sets an environment variable for the time of a test.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Environment() { old_.empty() ? unsetenv(name_) : setenv(name_, old_.c_str(), 1); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::string old_;
};

void fill_classes(const TestFolder& folder) {
  for (const char* name : {"a/1.jpg", "a/2.jpg", "b/1.jpg", "b/note.txt"}) folder.write(name, "some bytes");
}

void fill_flat(const TestFolder& folder) {
  for (const char* name : {"1.jpg", "2.jpg", "3.jpg"}) folder.write(name, "some bytes");
}

TEST(IndexCacheTest, ASecondOpenScansNothingAndSaysTheSame) {
  for (const bool is_flat : {false, true}) {
    const TestFolder folder;
    is_flat ? fill_flat(folder) : fill_classes(folder);
    const Opening cold = open_at(folder.path());
    ASSERT_TRUE(cold.result.ok()) << cold.result.error().message;
    EXPECT_GT(cold.progress_calls, 0u);
    ASSERT_EQ(index_files(folder.path()).size(), 1u);
    for (int again = 0; again < 3; ++again) {
      const Opening warm = open_at(folder.path());
      ASSERT_TRUE(warm.result.ok());
      EXPECT_EQ(warm.progress_calls, 0u) << (is_flat ? "flat" : "classes");
      EXPECT_EQ(warm.source().fingerprint(), cold.source().fingerprint());
      EXPECT_EQ(keys_of(warm.source()), keys_of(cold.source()));
      EXPECT_EQ(warm.warnings, cold.warnings);
      EXPECT_EQ(warm.source().locate(1).stamp, cold.source().locate(1).stamp);
    }
  }
}

TEST(IndexCacheTest, AMovedFolderKeepsItsIndex) {
  const TestFolder around;
  run("mkdir " + around.path("old"));
  run("touch " + around.path("old/1.jpg"));
  const Opening cold = open_at(around.path("old"));
  fs::rename(around.path("old"), around.path("new"));
  EXPECT_EQ(open_at(around.path("new")).progress_calls, 0u);
  EXPECT_EQ(open_at(around.path("new") + "//").progress_calls, 0u);
}

TEST(IndexCacheTest, EveryChangeOfADirectoryIsSeen) {
  for (const bool is_flat : {false, true}) {
    const TestFolder folder;
    is_flat ? fill_flat(folder) : fill_classes(folder);
    const std::string in = is_flat ? "" : "a/";
    const auto expect_rescan = [&](const char* what, std::uint64_t samples) {
      const Opening opening = open_at(folder.path());
      ASSERT_TRUE(opening.result.ok()) << what;
      EXPECT_GT(opening.progress_calls, 0u) << what << (is_flat ? " flat" : " classes");
      EXPECT_EQ(opening.source().size(), samples) << what;
      EXPECT_EQ(open_at(folder.path()).progress_calls, 0u) << "after " << what;
      wait_a_tick();
    };
    expect_rescan("first", 3);
    folder.write(in + "9.jpg", "new");
    expect_rescan("added", 4);
    fs::rename(folder.path(in + "9.jpg"), folder.path(in + "8.jpg"));
    expect_rescan("renamed", 4);
    folder.write(".other/x.jpg", "y");
    fs::rename(folder.path(".other/x.jpg"), folder.path(in + "8.jpg"));
    expect_rescan("replaced", 4);
    fs::remove(folder.path(in + "8.jpg"));
    expect_rescan("removed", 3);
  }
}

TEST(IndexCacheTest, ARescanTellsWhatChanged) {
  const TestFolder folder;
  fill_classes(folder);
  const auto expect_note = [&](const std::string& what) {
    wait_a_tick();
    const Opening opening = open_at(folder.path());
    EXPECT_EQ(opening.warned_of("indexed anew"), !what.empty());
    EXPECT_TRUE(opening.warned_of(what.empty() ? "" : "changed since it was indexed, " + what + ": indexed anew"))
        << what;
    EXPECT_FALSE(open_at(folder.path()).warned_of("indexed anew")) << "after " << what;
  };
  expect_note("");
  for (const char* name : {"a/7.jpg", "b/8.jpg", "c/9.jpg"}) folder.write(name, "new");
  expect_note("+3 samples");
  fs::remove(folder.path("a/7.jpg"));
  expect_note("-1 sample");
  folder.write(".other/x.jpg", "longer than before");
  fs::rename(folder.path(".other/x.jpg"), folder.path("b/8.jpg"));
  expect_note("1 sample changed");
  folder.write("b/10.jpg", "new");
  folder.write("b/11.jpg", "new");
  fs::remove(folder.path("c/9.jpg"));
  fs::remove(folder.path("b/8.jpg"));
  folder.write("b/8.jpg", "once more");
  expect_note("+2 samples, -1, 1 changed");
  folder.write("b/passing.txt", "no sample");
  fs::remove(folder.path("b/passing.txt"));
  expect_note("");
}

TEST(IndexCacheTest, ANewClassIsSeen) {
  const TestFolder folder;
  fill_classes(folder);
  open_at(folder.path());
  wait_a_tick();
  folder.write("c/1.jpg", "x");
  EXPECT_EQ(open_at(folder.path()).source().size(), 4u);
}

// The trap: the directory changes in the same tick of the clock in which it was listed.
TEST(IndexCacheTest, AChangeThatLeavesTheMtimeAsItWasIsSeen) {
  const TestFolder folder;
  fill_classes(folder);
  ASSERT_TRUE(open_at(folder.path()).result.ok());
  struct stat before {};
  ASSERT_EQ(stat(folder.path("a").c_str(), &before), 0);
  folder.write("a/3.jpg", "x");
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, folder.path("a").c_str(), times, 0), 0);
  const Opening opening = open_at(folder.path());
  EXPECT_EQ(opening.source().size(), 4u);
}

TEST(IndexCacheTest, AnOldDirectoryIsTrustedByItsMtime) {
  const TestFolder folder;
  fill_classes(folder);
  run("touch -d '1 hour ago' " + folder.path("a") + " " + folder.path("b"));
  ASSERT_TRUE(open_at(folder.path()).result.ok());
  // Not listed again, as the test can tell because it plays a trick that only a listing would see.
  folder.write("a/3.jpg", "x");
  run("touch -r " + folder.path("b") + " " + folder.path("a"));
  const Opening opening = open_at(folder.path());
  EXPECT_EQ(opening.source().size(), 3u);
}

TEST(IndexCacheTest, ADamagedIndexIsBuiltAnewWithAWarning) {
  const TestFolder folder;
  fill_classes(folder);
  const Opening first = open_at(folder.path());
  const std::string file = index_files(folder.path()).at(0);
  const auto size = fs::file_size(file);
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{20}, size / 2, size - 1}) {
    {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(static_cast<std::streamoff>(at));
      const char old = static_cast<char>(stream.get());
      stream.seekp(static_cast<std::streamoff>(at));
      stream.put(static_cast<char>(old ^ 4));
    }
    const Opening opening = open_at(folder.path());
    ASSERT_TRUE(opening.result.ok());
    EXPECT_GT(opening.progress_calls, 0u);
    EXPECT_TRUE(opening.warned_of("it is built anew")) << at;
    EXPECT_EQ(opening.source().fingerprint(), first.source().fingerprint());
    EXPECT_EQ(open_at(folder.path()).progress_calls, 0u);
  }
  fs::resize_file(file, size / 2);
  EXPECT_TRUE(open_at(folder.path()).warned_of("it is built anew"));
  fs::resize_file(file, 0);
  EXPECT_TRUE(open_at(folder.path()).warned_of("it is built anew"));
}

TEST(IndexCacheTest, AnIndexThatIsALinkIsReplacedAndNotFollowed) {
  const TestFolder folder;
  const TestFolder elsewhere;
  fill_classes(folder);
  open_at(folder.path());
  const std::string file = index_files(folder.path()).at(0);
  fs::rename(file, elsewhere.path("index"));
  fs::create_symlink(elsewhere.path("index"), file);
  const Opening opening = open_at(folder.path());
  EXPECT_GT(opening.progress_calls, 0u);
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(file)));
}

TEST(IndexCacheTest, RebuildIsDoneWhenAsked) {
  const TestFolder folder;
  fill_classes(folder);
  open_at(folder.path());
  SourceOptions options;
  options.datasets = {folder.path()};
  options.rebuild_index = true;
  EXPECT_GT(open_with(options).progress_calls, 0u);
}

TEST(IndexCacheTest, ATrustedIndexIsNotComparedWithTheDataset) {
  const TestFolder folder;
  fill_classes(folder);
  SourceOptions trusting;
  trusting.datasets = {folder.path()};
  trusting.trust_index = true;
  EXPECT_GT(open_with(trusting).progress_calls, 0u) << "there is none yet";
  wait_a_tick();
  folder.write("a/3.jpg", "more");
  const Opening trusted = open_with(trusting);
  ASSERT_TRUE(trusted.result.ok());
  EXPECT_EQ(trusted.progress_calls, 0u);
  EXPECT_EQ((*trusted.result)->size(), 3u);
  EXPECT_EQ((*open_at(folder.path()).result)->size(), 4u);
  trusting.rebuild_index = true;
  EXPECT_GT(open_with(trusting).progress_calls, 0u);
}

TEST(IndexCacheTest, AGivenIndexFolderIsUsedAndNothingIsWrittenBesideTheData) {
  const TestFolder folder;
  const TestFolder around;
  for (const bool is_flat : {false, true}) {
    is_flat ? fill_flat(folder) : fill_classes(folder);
    SourceOptions options;
    options.datasets = {folder.path()};
    options.index_folder = around.path("new/indexes");
    EXPECT_GT(open_with(options).progress_calls, 0u);
    EXPECT_EQ(open_with(options).progress_calls, 0u);
    EXPECT_TRUE(index_files(folder.path()).empty());
    EXPECT_EQ(std::distance(fs::directory_iterator(options.index_folder), fs::directory_iterator()), 1);
    fs::remove_all(folder.path("a"));
    fs::remove_all(folder.path("b"));
  }
}

// Stands in for a folder that is not writable, also for root: something is in the way of the index file.
void block_index_beside(const TestFolder& folder) {
  open_at(folder.path());
  const std::string file = index_files(folder.path()).at(0);
  fs::remove(file);
  fs::create_directories(file + "/in the way");
}

TEST(IndexCacheTest, AnUnwritableFolderSendsTheIndexToTheUsersCache) {
  const TestFolder folder;
  const TestFolder cache;
  fill_classes(folder);
  block_index_beside(folder);
  const Environment environment("XDG_CACHE_HOME", cache.path("xdg"));
  const Opening cold = open_at(folder.path());
  EXPECT_GT(cold.progress_calls, 0u);
  EXPECT_FALSE(cold.warned_of("can not be kept"));
  EXPECT_EQ(std::distance(fs::directory_iterator(cache.path("xdg/foreload")), fs::directory_iterator()), 1);
  EXPECT_EQ(open_at(folder.path()).progress_calls, 0u);
}

TEST(IndexCacheTest, NothingIsWrittenIntoAFolderThatIsMarkedReadOnlyEvenByRoot) {
  const TestFolder folder;
  const TestFolder cache;
  fill_flat(folder);
  const Environment environment("XDG_CACHE_HOME", cache.path());
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  struct stat before {};
  ASSERT_EQ(stat(folder.path().c_str(), &before), 0);
  EXPECT_GT(open_at(folder.path()).progress_calls, 0u);
  EXPECT_EQ(open_at(folder.path()).progress_calls, 0u);
  const std::vector<Dimensions> dimensions(3, Dimensions{4, 5});
  EXPECT_TRUE(store_dimensions(open_at(folder.path()).source(), dimensions).ok());
  EXPECT_TRUE(open_at(folder.path()).source().dimensions(0));
  struct stat after {};
  ASSERT_EQ(stat(folder.path().c_str(), &after), 0);
  EXPECT_EQ(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
  EXPECT_TRUE(index_files(folder.path()).empty());
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
}

TEST(IndexCacheTest, AnIndexInAFolderThatWasLockedLaterIsReadButNotRewritten) {
  const TestFolder folder;
  fill_classes(folder);
  open_at(folder.path());
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  const Opening opening = open_at(folder.path());
  EXPECT_EQ(opening.progress_calls, 0u);
  const std::vector<Dimensions> dimensions(3, Dimensions{4, 5});
  const Status stored = store_dimensions(opening.source(), dimensions);
  ASSERT_FALSE(stored.ok());
  EXPECT_NE(stored.error().message.find("is marked read-only"), std::string::npos);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
}

TEST(IndexCacheTest, WhereNothingIsWritableTheIndexIsKeptInMemoryWithAWarning) {
  const TestFolder folder;
  const TestFolder cache;
  fill_flat(folder);
  block_index_beside(folder);
  const Environment environment("XDG_CACHE_HOME", cache.write("file", "x") + "/xdg");
  for (int again = 0; again < 2; ++again) {
    const Opening opening = open_at(folder.path());
    ASSERT_TRUE(opening.result.ok());
    EXPECT_EQ(opening.source().size(), 3u);
    EXPECT_GT(opening.progress_calls, 0u);
    EXPECT_TRUE(opening.warned_of("the index can not be kept and will be built again next time"));
    const std::vector<Dimensions> dimensions(3);
    EXPECT_EQ(store_dimensions(opening.source(), dimensions).error().code, Code::kIo);
  }
}

TEST(IndexCacheTest, DimensionsAreThereAtTheNextOpenWithoutARescan) {
  for (const bool is_flat : {false, true}) {
    const TestFolder folder;
    is_flat ? fill_flat(folder) : fill_classes(folder);
    const Opening cold = open_at(folder.path());
    const std::vector<Dimensions> dimensions{{640, 480}, {0, 0}, {32, 16}};
    ASSERT_TRUE(store_dimensions(cold.source(), dimensions).ok());
    EXPECT_FALSE(cold.source().dimensions(0));
    const Opening warm = open_at(folder.path());
    EXPECT_EQ(warm.progress_calls, 0u) << (is_flat ? "flat" : "classes");
    ASSERT_TRUE(warm.source().dimensions(0));
    EXPECT_EQ(warm.source().dimensions(0)->width, 640u);
    EXPECT_FALSE(warm.source().dimensions(1));
    EXPECT_EQ(warm.source().dimensions(2)->height, 16u);
    EXPECT_EQ(store_dimensions(warm.source(), std::span(dimensions).first(2)).error().code, Code::kInvalid);
  }
}

TEST(IndexCacheTest, ProcessesThatBuildAtOnceAllSucceedAndLeaveOneFile) {
  const TestFolder folder;
  fill_classes(folder);
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      SourceOptions options;  // without progress: nothing but plain work in the child
      options.datasets = {folder.path()};
      options.threads = 1;
      const auto source = open_source(options);
      _exit(source.ok() && (*source)->size() == 3 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(index_files(folder.path()).size(), 1u);
  EXPECT_TRUE(open_at(folder.path()).result.ok());
}

}  // namespace
}  // namespace foreload
