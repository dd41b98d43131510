#include "probe/read_stream.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/clock.h"
#include "base/test_folder.h"
#include "probe/measure_storage.h"

namespace foreload {
namespace {

std::unique_ptr<Source> open_folder(const std::string& folder) {
  auto source = open_source({.datasets = {folder}});
  EXPECT_TRUE(source.ok()) << source.error().message;
  return source.ok() ? std::move(*source) : nullptr;
}

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(ReadStreamTest, ShowsEverySampleOnceAndPassesOverWhatIsEmptyOrMuchTooLong) {
  const TestFolder top;
  for (int i = 0; i < 40; ++i) top.write("set/" + std::to_string(10 + i) + ".bin", std::string(1000 + i, 'a' + i % 26));
  top.write("set/98.bin", "");
  top.write("set/99.bin", std::string(5'000'000, 'x'));
  const auto source = open_folder(top.path("set"));
  ASSERT_NE(source, nullptr);
  for (const bool direct : {false, true}) {
    Allowance allowance({});
    const auto stream = ReadStream::open(*source, {.direct = direct, .depth = 7});
    ASSERT_TRUE(stream.ok()) << stream.error().message;
    const auto order = [&, id = SampleId{0}]() mutable {
      return id < source->size() ? std::optional(id++) : std::nullopt;
    };
    ASSERT_TRUE((*stream)->begin(order, 7, allowance).ok());
    std::map<SampleId, std::string> seen;
    const auto show = [&](SampleId id, std::span<const std::byte> bytes) -> Status {
      EXPECT_TRUE(seen.emplace(id, text(bytes)).second);
      return {};
    };
    ASSERT_TRUE((*stream)->read_all(show, kNever, allowance).ok());
    ASSERT_EQ(seen.size(), 40u);
    for (int i = 0; i < 40; ++i) EXPECT_EQ(seen[i], std::string(1000 + i, 'a' + i % 26));
    EXPECT_EQ(allowance.spent(), 40'000u + 39 * 40 / 2);
  }
}

TEST(ReadStreamTest, AWindowCountsWholeSamplesAfterTheFirstReads) {
  const TestFolder top;
  for (int i = 0; i < 16; ++i) top.write("set/" + std::to_string(10 + i) + ".bin", std::string(1000, 'a'));
  const auto source = open_folder(top.path("set"));
  ASSERT_NE(source, nullptr);
  Allowance allowance({});
  const auto stream = ReadStream::open(*source, {.depth = 4});
  ASSERT_TRUE(stream.ok()) << stream.error().message;
  const auto order = [&, id = SampleId{0}]() mutable { return id < 16 ? std::optional(id++) : std::nullopt; };
  ASSERT_TRUE((*stream)->begin(order, 4, allowance).ok());
  const auto all = (*stream)->window({.least = 100, .bytes = 1, .time = {}, .deadline = kNever}, allowance);
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_LE(all->samples, 12u);  // the order has ended before there were a hundred
  EXPECT_GT(all->samples, 0u);
  EXPECT_EQ(all->bytes, 1000 * all->samples);
  EXPECT_EQ(allowance.spent(), 16'000u);
}

TEST(ReadStreamTest, AFileThatChangedIsAnErrorWithItsName) {
  const TestFolder top;
  top.write("set/a.bin", std::string(1000, 'a'));
  const auto source = open_folder(top.path("set"));
  ASSERT_NE(source, nullptr);
  top.write("set/a.bin", std::string(2000, 'b'));
  Allowance allowance({});
  const auto stream = ReadStream::open(*source, {.depth = 1});
  ASSERT_TRUE(stream.ok()) << stream.error().message;
  ASSERT_TRUE((*stream)->begin([] { return std::optional<SampleId>(0); }, 1, allowance).ok());
  const auto window = (*stream)->window({.least = 1, .bytes = 1, .time = {}, .deadline = kNever}, allowance);
  ASSERT_FALSE(window.ok());
  EXPECT_EQ(window.error().code, Code::kDataChanged);
  EXPECT_NE(window.error().message.find("a.bin"), std::string::npos);
}

TEST(ColdnessTest, FilesInMemoryCanNotBeColder) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  std::string folder = "/dev/shm/foreload-test-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) GTEST_SKIP() << "/dev/shm is not writable";
  std::ofstream(folder + "/a.bin") << std::string(10'000, 'a');
  const auto source = open_folder(folder);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(find_coldness(*source, 1), is_in_memory(*source, 0) ? Coldness::kMemory : Coldness::kDirect);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace foreload
