#include "base/write_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <string_view>
#include <vector>

#include "base/test_folder.h"

namespace foreload {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(CreateOutputTest, TakesFilesAndDevicesButNeverWaitsForAPipe) {
  const TestFolder folder;
  const std::string path = folder.write("file", "old");
  EXPECT_TRUE(create_output(path).ok());
  EXPECT_EQ(fs::file_size(path), 0u);
  EXPECT_TRUE(create_output("/dev/null").ok());
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(create_output(folder.path("pipe")).error().code, Code::kInvalid);
  const Descriptor reader(open(folder.path("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(create_output(folder.path("pipe")).error().code, Code::kInvalid);
  EXPECT_NE(create_output(folder.path()).error().message.find(folder.path()), std::string::npos);
  EXPECT_EQ(create_output(folder.path("missing/file")).error().code, Code::kNotFound);
}

TEST(ReplaceFileTest, ReplacesAndLeavesNothingElse) {
  const TestFolder folder;
  const std::string path = folder.write("file", "old");
  EXPECT_TRUE(replace_file(path, bytes_of("new content")).ok());
  EXPECT_EQ(*read_whole_file(path, 100), "new content");
  EXPECT_TRUE(replace_file(path, {}).ok());
  EXPECT_EQ(fs::file_size(path), 0u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(ReplaceFileTest, FailureNamesTheFileAndLeavesNothing) {
  const TestFolder folder;
  folder.write("in_the_way/file", "x");
  const Status status = replace_file(folder.path("in_the_way"), bytes_of("x"));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("in_the_way"), std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  EXPECT_EQ(replace_file(folder.path("missing/file"), {}).error().code, Code::kNotFound);
}

TEST(ReplaceFileTest, AFailedWriteLeavesTheOldContent) {
  const TestFolder folder;
  const std::string path = folder.write("file", "old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit tiny = before;
  tiny.rlim_cur = 4096;
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tiny), 0);
  const Status status = replace_file(path, bytes_of(std::string(10'000, 'n')));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(*read_whole_file(path, 100), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(ReplaceFileTest, RefusesWhatIsNoFileAndReplacesALinkItself) {
  const TestFolder folder;
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(replace_file(folder.path("pipe"), bytes_of("x")).error().code, Code::kInvalid);
  EXPECT_TRUE(fs::is_fifo(folder.path("pipe")));
  EXPECT_EQ(replace_file("/dev/null", bytes_of("x")).error().code, Code::kInvalid);
  fs::create_symlink(folder.write("precious", "old"), folder.path("link"));
  EXPECT_TRUE(replace_file(folder.path("link"), bytes_of("new")).ok());
  EXPECT_EQ(*read_whole_file(folder.path("precious"), 100), "old");
  EXPECT_EQ(*read_whole_file(folder.path("link"), 100), "new");
}

TEST(FollowLinksTest, LeadsToTheLastTargetEvenIfItIsMissing) {
  const TestFolder folder;
  folder.write("a/file", "x");
  fs::create_symlink("a/second", folder.path("first"));
  fs::create_symlink("file", folder.path("a/second"));
  fs::create_symlink(folder.path("a/missing"), folder.path("dangling"));
  fs::create_symlink("loop", folder.path("loop"));
  EXPECT_EQ(*follow_links(folder.path("first")), folder.path("a/file"));
  EXPECT_EQ(*follow_links(folder.path("a/file")), folder.path("a/file"));
  EXPECT_EQ(*follow_links(folder.path("dangling")), folder.path("a/missing"));
  EXPECT_EQ(*follow_links(folder.path("nothing")), folder.path("nothing"));
  EXPECT_EQ(follow_links(folder.path("loop")).error().code, Code::kInvalid);
}

TEST(RemoveLeftoversTest, RemovesOldOnesOfDeadProcessesOnly) {
  const TestFolder folder;
  const pid_t dead = fork();
  if (dead == 0) _exit(0);
  ASSERT_EQ(waitpid(dead, nullptr, 0), dead);
  const auto leave = [&](const std::string& name, time_t age) {
    const timespec times[2] = {{time(nullptr) - age, 0}, {time(nullptr) - age, 0}};
    EXPECT_EQ(utimensat(AT_FDCWD, folder.write(name, "half").c_str(), times, 0), 0);
  };
  const std::string old = "job." + std::to_string(dead) + "-7.tmp";
  leave(old, 3600);
  const std::vector<std::string> kept{"job." + std::to_string(dead) + "-8.tmp",
                                      "job.1-7.tmp",
                                      "jobs." + std::to_string(dead) + "-7.tmp",
                                      "job.x-7.tmp",
                                      "job." + std::to_string(dead) + "-7.tmp.bak",
                                      "job.tmp",
                                      "job"};
  for (const std::string& name : kept) leave(name, name == kept[0] ? 0 : 3600);
  remove_leftovers(folder.path("job"));
  EXPECT_FALSE(fs::exists(folder.path(old)));
  for (const std::string& name : kept) EXPECT_TRUE(fs::exists(folder.path(name))) << name;
  remove_leftovers(folder.path("missing/job"));
}

}  // namespace
}  // namespace foreload
