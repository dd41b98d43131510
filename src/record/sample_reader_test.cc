#include "record/sample_reader.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/test_folder.h"

namespace foreload {
namespace {

TEST(SampleReaderTest, StopIsAskedBetweenTheAttempts) {
  const TestFolder folder;
  folder.write("a/0.bin", "content");
  SourceOptions options;
  options.datasets = {folder.path()};
  options.keep_index = false;
  const auto source = open_source(options);
  ASSERT_TRUE(source.ok());
  int asked = 0;
  SampleReader reader(**source, [&] { return ++asked == 3; });
  ASSERT_TRUE(reader.read(0).ok());
  EXPECT_EQ(asked, 0) << "what succeeds at once asks nobody";
  // No further descriptor: an error that may pass.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto read = reader.read(0);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Code::kCancelled) << read.error().message;
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace foreload
