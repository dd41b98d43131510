#include "source/throttle.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/test_folder.h"
#include "base/thread.h"

namespace foreload {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Time kStart = hours(5);

TEST(ThrottleTest, BytesArriveAtTheRatePlusTheLatency) {
  auto throttle = Throttle::open("100MB/s,5ms");
  ASSERT_TRUE(throttle.ok()) << throttle.error().message;
  EXPECT_EQ(throttle->reserve(kStart, 1'000'000), kStart + milliseconds(10) + milliseconds(5));
  // The latency of the second overlaps with the first.
  EXPECT_EQ(throttle->reserve(kStart, 2'000'000), kStart + milliseconds(30) + milliseconds(5));
  // The bucket does not save up what nobody asked for.
  EXPECT_EQ(throttle->reserve(kStart + seconds(1), 1'000'000), kStart + seconds(1) + milliseconds(15));
}

TEST(ThrottleTest, EachPartIsOptional) {
  EXPECT_EQ(Throttle::open("1MB/s")->reserve(kStart, 1000), kStart + milliseconds(1));
  EXPECT_EQ(Throttle::open("7ms")->reserve(kStart, 1'000'000'000), kStart + milliseconds(7));
  const TestFolder folder;
  EXPECT_EQ(Throttle::open("bucket=" + folder.path("b"))->reserve(kStart, 1 << 30), kStart);
}

TEST(ThrottleTest, WrongSpecsAreRefusedByName) {
  for (const char* spec : {"", ",", "fast", "100MB", "0MB/s", "/s", "1MB/s,2MB/s", "1ms,2ms", "1MB/s,,1ms",
                           "bucket=", "-1MB/s", "5h", "bucket=/tmp/a,bucket=/tmp/b"}) {
    const auto throttle = Throttle::open(spec);
    ASSERT_FALSE(throttle.ok()) << spec;
    EXPECT_EQ(throttle.error().code, Code::kInvalid);
    EXPECT_NE(throttle.error().message.find("100MB/s,5ms,bucket=FILE"), std::string::npos);
  }
}

TEST(ThrottleTest, TheBucketIsA64ByteFileThatOnlyItsOwnerMayUse) {
  const TestFolder folder;
  ASSERT_TRUE(Throttle::open("1MB/s,bucket=" + folder.path("b")).ok());
  struct stat status {};
  ASSERT_EQ(stat(folder.path("b").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 64);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator()),
            1);
}

TEST(ThrottleTest, ForeignFilesAreRefusedAndLeftAsTheyAre) {
  const TestFolder folder;
  const std::string of_that_size(64, 'x');
  for (const std::string& content : {std::string(), std::string("precious"), of_that_size, of_that_size + "y"}) {
    const std::string path = folder.write("f", content);
    EXPECT_FALSE(Throttle::open("1MB/s,bucket=" + path).ok());
    std::ifstream stream(path, std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), content);
  }
  std::filesystem::create_symlink(folder.path("f"), folder.path("link"));
  EXPECT_FALSE(Throttle::open("1MB/s,bucket=" + folder.path("link")).ok());
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(Throttle::open("1MB/s,bucket=" + folder.path("pipe")).ok());
  EXPECT_FALSE(Throttle::open("1MB/s,bucket=" + folder.path()).ok());
  EXPECT_FALSE(Throttle::open("1MB/s,bucket=" + folder.path("no/such/folder")).ok());
}

TEST(ThrottleTest, ThreadsAndThrottlesOverOneBucketShareTheRate) {
  const TestFolder folder;
  const std::string spec = "1MB/s,bucket=" + folder.path("b");
  auto first = Throttle::open(spec);
  auto second = Throttle::open(spec);
  parallel_for(4, 1000, [&](std::uint64_t i) { (i % 2 == 0 ? first : second)->reserve(kStart, 1000); });
  EXPECT_EQ(first->reserve(kStart, 0), kStart + seconds(1));
}

TEST(ThrottleTest, ProcessesShareTheRateAlsoWhenAllCreateTheBucket) {
  const TestFolder folder;
  const std::string spec = "1MB/s,bucket=" + folder.path("b");
  std::vector<pid_t> children;
  for (int i = 0; i < 5; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto throttle = Throttle::open(spec);
      for (int k = 0; throttle.ok() && k < 100; ++k) throttle->reserve(kStart, 1000);
      _exit(throttle.ok() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(Throttle::open(spec)->reserve(kStart, 0), kStart + milliseconds(500));
}

TEST(ThrottleTest, ATimeFromBeforeARebootIsForgotten) {
  const TestFolder folder;
  const std::string spec = "1MB/s,bucket=" + folder.path("b");
  EXPECT_EQ(Throttle::open(spec)->reserve(hours(1000), 1000), hours(1000) + milliseconds(1));
  EXPECT_EQ(Throttle::open(spec)->reserve(seconds(10), 1000), seconds(10) + milliseconds(1));
}

TEST(ThrottleTest, HugeRequestsDoNotOverflow) {
  auto throttle = Throttle::open("1B/s");
  ASSERT_TRUE(throttle.ok());
  EXPECT_EQ(throttle->reserve(kStart, ~Bytes{0}), kStart + hours(1));
}

}  // namespace
}  // namespace foreload
