#include "probe/dimension_scan.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "base/test_folder.h"
#include "base/write_file.h"
#include "prep/jpeg_encode.h"

namespace foreload {
namespace {

namespace fs = std::filesystem;

// A gray JPEG, with `padding` bytes of application data between its start and its size.
std::vector<std::byte> jpeg(unsigned width, unsigned height, std::size_t padding = 0) {
  const std::vector<std::uint8_t> line(width, 99);
  const std::vector<const std::uint8_t*> rows(height, line.data());
  JpegStyle style;
  style.colour = JpegColour::kGray;
  std::vector<std::byte> file = encode_jpeg(rows, width, style);
  while (padding > 0) {
    const std::size_t some = std::min<std::size_t>(padding, 60'000);
    std::vector<std::byte> segment{std::byte{0xff}, std::byte{0xe5}, std::byte((some + 2) >> 8), std::byte(some + 2)};
    segment.resize(4 + some);
    file.insert(file.begin() + 2, segment.begin(), segment.end());
    padding -= some;
  }
  return file;
}

class DimensionScanTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::vector<std::byte>& content) const {
    ASSERT_TRUE(replace_file(top_.path(name), content));
  }
  std::unique_ptr<Source> open() const {
    SourceOptions options;
    options.datasets = {top_.path()};
    options.index_folder = top_.path(".index");
    fs::create_directories(options.index_folder);
    auto source = open_source(options);
    return source ? std::move(source).value() : nullptr;
  }

  TestFolder top_;
};

TEST_F(DimensionScanTest, FindsTheSizeHoweverLateTheHeaderNamesIt) {
  write("a.jpg", jpeg(31, 17));
  write("b.jpg", jpeg(640, 2, 200'000));
  const auto source = open();
  ASSERT_NE(source, nullptr);
  const auto scan = scan_dimensions(*source, {});
  ASSERT_TRUE(scan) << scan.error().message;
  ASSERT_EQ(scan->dimensions.size(), 2u);
  EXPECT_EQ(scan->dimensions[0].width, 31u);
  EXPECT_EQ(scan->dimensions[0].height, 17u);
  EXPECT_EQ(scan->dimensions[1].width, 640u);
  EXPECT_EQ(scan->unknown, 0u);
}

TEST_F(DimensionScanTest, CountsWhatIsNoImageAndNamesTheFirst) {
  write("a.jpg", jpeg(8, 8));
  write("b.jpg", std::vector<std::byte>(100));
  write("c.jpg", std::vector<std::byte>());
  const auto source = open();
  ASSERT_NE(source, nullptr);
  const auto scan = scan_dimensions(*source, {});
  ASSERT_TRUE(scan) << scan.error().message;
  EXPECT_EQ(scan->unknown, 2u);
  EXPECT_NE(scan->example.find("b.jpg"), std::string::npos) << scan->example;
  EXPECT_EQ(scan->dimensions[1].width, 0u);
}

TEST_F(DimensionScanTest, AFileThatChangedSinceItWasIndexedIsAnError) {
  write("a.jpg", jpeg(8, 8));
  const auto source = open();
  ASSERT_NE(source, nullptr);
  write("a.jpg", jpeg(8, 9, 10));
  const auto scan = scan_dimensions(*source, {});
  ASSERT_FALSE(scan);
  EXPECT_EQ(scan.error().code, Code::kDataChanged);
  EXPECT_NE(scan.error().message.find("a.jpg"), std::string::npos) << scan.error().message;
}

TEST_F(DimensionScanTest, StopsWhenAsked) {
  write("a.jpg", jpeg(8, 8));
  const auto source = open();
  ASSERT_NE(source, nullptr);
  DimensionScanOptions options;
  options.stop = [] { return true; };
  const auto scan = scan_dimensions(*source, options);
  ASSERT_FALSE(scan);
  EXPECT_EQ(scan.error().code, Code::kCancelled);
}

}  // namespace
}  // namespace foreload
