#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "base/open_below.h"
#include "base/test_folder.h"

namespace foreload {
namespace {

namespace fs = std::filesystem;

std::string read_all(int fd) {
  std::string text(100, '\0');
  const ssize_t got = pread(fd, text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text;
}

TEST(DescriptorTest, ClosesOnceAndMoves) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  Descriptor reader(pipe_ends[0]);
  {
    Descriptor writer(pipe_ends[1]);
    const Descriptor moved = std::move(writer);
    EXPECT_FALSE(writer.valid());
    EXPECT_EQ(moved.get(), pipe_ends[1]);
  }
  EXPECT_EQ(fcntl(pipe_ends[1], F_GETFD), -1);
  reader = Descriptor();
  EXPECT_EQ(fcntl(pipe_ends[0], F_GETFD), -1);
}

TEST(ErrnoErrorTest, NamesTheThingAndFitsTheErrno) {
  EXPECT_EQ(errno_error("cannot open x", ENOENT).message, "cannot open x: No such file or directory");
  EXPECT_EQ(errno_error("x", ENOENT).code, Code::kNotFound);
  EXPECT_EQ(errno_error("x", EIO).code, Code::kIo);
  EXPECT_EQ(errno_error("x", ENOMEM).code, Code::kNoMemory);
}

TEST(OpenDirectoryTest, RefusesFilesAndMissingFolders) {
  const TestFolder folder;
  EXPECT_TRUE(open_directory(folder.path()).ok());
  EXPECT_EQ(open_directory(folder.path("nothing")).error().code, Code::kNotFound);
  EXPECT_FALSE(open_directory(folder.write("file", "x")).ok());
}

// The tree that every way of opening is tried on:  root/a/b.jpg  root/links…  outside.jpg
class OpenBelowTest : public testing::Test {
 protected:
  OpenBelowTest() {
    folder_.write("outside.jpg", "secret");
    folder_.write("root/a/b.jpg", "inside");
    folder_.write("root/c.jpg", "top");
    link("a/b.jpg", "to_file");
    link("a", "to_folder");
    link("to_folder/../c.jpg", "zigzag");
    link("../outside.jpg", "escapes");
    link("..", "up");
    link(folder_.path("root/c.jpg"), "absolute");
    link("loop_2", "loop_1");
    link("loop_1", "loop_2");
    link("/proc/self/root", "magic");
    root_ = std::move(*open_directory(folder_.path("root")));
  }
  void link(const std::string& target, const std::string& name) const {
    fs::create_symlink(target, folder_.path("root/" + name));
  }

  TestFolder folder_;
  Descriptor root_;
};

TEST_F(OpenBelowTest, BothWaysFollowWhatStaysInside) {
  for (const auto& open : {open_below_by_kernel, open_below_by_steps}) {
    for (const auto& [path, content] :
         {std::pair("a/b.jpg", "inside"), std::pair("./a//b.jpg", "inside"), std::pair("c.jpg", "top"),
          std::pair("to_file", "inside"), std::pair("to_folder/b.jpg", "inside"), std::pair("zigzag", "top")}) {
      const Descriptor file(open(root_.get(), path, kOpenBelowFlags));
      ASSERT_TRUE(file.valid()) << path << " " << file.get();
      EXPECT_EQ(read_all(file.get()), content) << path;
    }
  }
}

TEST_F(OpenBelowTest, BothWaysRefuseWhatLeadsOutside) {
  const std::string absolute = folder_.path("root/c.jpg");
  for (const auto& open : {open_below_by_kernel, open_below_by_steps}) {
    for (const char* path : {"../outside.jpg", "a/../../outside.jpg", "escapes", "up/outside.jpg", "absolute",
                             "magic/etc/passwd", "/etc/passwd", absolute.c_str()}) {
      EXPECT_EQ(open(root_.get(), path, kOpenBelowFlags), -EXDEV) << path;
    }
    EXPECT_EQ(open(root_.get(), "loop_1", kOpenBelowFlags), -ELOOP);
    EXPECT_EQ(open(root_.get(), "missing", kOpenBelowFlags), -ENOENT);
    EXPECT_EQ(open(root_.get(), "a/missing.jpg", kOpenBelowFlags), -ENOENT);
    EXPECT_EQ(open(root_.get(), "c.jpg/b.jpg", kOpenBelowFlags), -ENOTDIR);
    EXPECT_EQ(open(root_.get(), "", kOpenBelowFlags), -ENOENT);
    const std::string long_name(5000, 'n');
    EXPECT_EQ(open(root_.get(), long_name.c_str(), kOpenBelowFlags), -ENAMETOOLONG);
  }
}

TEST_F(OpenBelowTest, OpensRegularFilesOnlyAndNeverBlocks) {
  ASSERT_EQ(mkfifo(folder_.path("root/pipe").c_str(), 0600), 0);
  const Descriptor listener(socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  folder_.path("root/socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  for (const char* path : {"pipe", "socket", "a", "."}) {
    const auto file = open_below(root_.get(), path);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_EQ(file.error().code, Code::kInvalid) << path;
    EXPECT_NE(file.error().message.find("not a regular file"), std::string::npos) << file.error().message;
  }
}

TEST_F(OpenBelowTest, ErrorsNameThePathAndWhy) {
  EXPECT_EQ(open_below(root_.get(), "missing").error().message, "cannot open missing: No such file or directory");
  EXPECT_EQ(open_below(root_.get(), "missing").error().code, Code::kNotFound);
  EXPECT_EQ(open_below(root_.get(), "a/../c.jpg").error().code, Code::kInvalid);
  EXPECT_EQ(open_below(root_.get(), "/etc/passwd").error().code, Code::kInvalid);
  EXPECT_EQ(open_below(root_.get(), std::string("c.jpg\0x", 7)).error().code, Code::kInvalid);
  EXPECT_NE(open_below(root_.get(), "escapes").error().message.find("leads outside"), std::string::npos);
  EXPECT_EQ(read_all(open_below(root_.get(), "a/b.jpg")->get()), "inside");
}

TEST(StampOfTest, SeesSizeAndNanoseconds) {
  const TestFolder folder;
  const std::string path = folder.write("file", "12345");
  const timespec times[2] = {{1'000, 7}, {1'234, 567'890'123}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(*stamp_of(file.get()), (FileStamp{5, 1'234'567'890'123}));
  EXPECT_FALSE(stamp_of(-1).ok());
}

TEST(ReadExactlyTest, FillsOrSaysWhereTheFileEnds) {
  const TestFolder folder;
  const Descriptor file(open(folder.write("file", "0123456789").c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(4, '\0');
  const auto into = std::as_writable_bytes(std::span(text));
  ASSERT_TRUE(read_exactly(file.get(), 6, into).ok());
  EXPECT_EQ(text, "6789");
  const Status cut = read_exactly(file.get(), 7, into);
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code, Code::kDataChanged);
  EXPECT_NE(cut.error().message.find("ends at byte 10"), std::string::npos) << cut.error().message;
  EXPECT_TRUE(read_exactly(file.get(), 99, {}).ok());
  EXPECT_EQ(read_exactly(-1, 0, into).error().code, Code::kIo);
}

TEST(ReadWholeFileTest, ReadsEverythingUpToTheLimit) {
  const TestFolder folder;
  const std::string content(200'000, 'c');
  const std::string path = folder.write("file", content);
  EXPECT_EQ(*read_whole_file(path, 200'000), content);
  EXPECT_EQ(*read_whole_file(folder.write("empty", ""), 0), "");
  EXPECT_EQ(read_whole_file(path, 199'999).error().code, Code::kInvalid);
  EXPECT_EQ(read_whole_file(folder.path("missing"), 1).error().code, Code::kNotFound);
  EXPECT_FALSE(read_whole_file(folder.path(), 1).ok());
  EXPECT_FALSE(read_whole_file("/proc/self/status", 1_MiB)->empty());
}

TEST(MappedFileTest, ShowsTheWholeFile) {
  const TestFolder folder;
  auto file = MappedFile::open(folder.write("file", "mapped"));
  ASSERT_TRUE(file.ok());
  const MappedFile moved = std::move(*file);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(moved.bytes().data()), moved.bytes().size()), "mapped");
  EXPECT_TRUE(file->bytes().empty());
  EXPECT_TRUE(MappedFile::open(folder.write("empty", ""))->bytes().empty());
  EXPECT_EQ(MappedFile::open(folder.path("missing")).error().code, Code::kNotFound);
  EXPECT_EQ(MappedFile::open(folder.path()).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace foreload
