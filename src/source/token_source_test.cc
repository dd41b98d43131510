#include "source/token_source.h"

#include <gtest/gtest.h>

#include "source/source_testing.h"

namespace foreload {
namespace {

SourceOptions options_for(std::vector<std::string> datasets, TokenSequences tokens) {
  SourceOptions options;
  options.datasets = std::move(datasets);
  options.tokens = tokens;
  return options;
}

TEST(TokenSourceTest, SamplesAreSequencesOfEachFileFromItsBeginning) {
  TestFolder folder;
  folder.write("t-0.bin", std::string(20, 'a'));  // two sequences of four u16 and a rest
  folder.write("t-1.bin", std::string(7, 'b'));   // none
  folder.write("t-2.bin", std::string(24, 'c'));
  const auto opening = open_with(options_for({folder.path() + "/t-{0..2}.bin"}, {DType::kU16, 4}));
  ASSERT_TRUE(opening.result.ok()) << opening.result.error().message;
  const Source& source = opening.source();
  ASSERT_EQ(source.size(), 5u);
  EXPECT_EQ(source.total_bytes(), 40u);
  EXPECT_EQ(source.key(1), "t-0.bin#1");
  EXPECT_EQ(source.key(2), "t-2.bin#0");
  const Extent extent = source.locate(4);
  EXPECT_EQ(extent.path, "t-2.bin");
  EXPECT_EQ(extent.offset, 16u);
  EXPECT_EQ(extent.length, 8u);
  EXPECT_EQ(extent.file, 2u);
  EXPECT_TRUE(extent.shared);
  EXPECT_TRUE(opening.warned_of("2 of 3 token files do not end with a whole sequence; 11 bytes"));
}

TEST(TokenSourceTest, SeveralListsFollowEachOther) {
  TestFolder folder;
  folder.write("x/a.bin", std::string(16, 'a'));
  folder.write("y/a.bin", std::string(8, 'b'));
  const auto opening =
      open_with(options_for({folder.path() + "/x/a.bin", folder.path() + "/y/*.bin"}, {DType::kU32, 2}));
  ASSERT_TRUE(opening.result.ok()) << opening.result.error().message;
  ASSERT_EQ(opening.source().size(), 3u);
  EXPECT_NE(opening.source().locate(0).root, opening.source().locate(2).root);
  EXPECT_TRUE(opening.warnings.empty());
}

TEST(TokenSourceTest, FingerprintIsThatOfTheDataAndNotOfItsPlace) {
  TestFolder here, there;
  for (TestFolder* folder : {&here, &there}) folder->write("t.bin", std::string(64, 'a'));
  const auto one = open_with(options_for({here.path() + "/t.bin"}, {DType::kU16, 4}));
  const auto copy = open_with(options_for({there.path() + "/t.bin"}, {DType::kU16, 4}));
  const auto longer = open_with(options_for({here.path() + "/t.bin"}, {DType::kU16, 8}));
  EXPECT_EQ(one.source().fingerprint(), copy.source().fingerprint());
  EXPECT_NE(one.source().fingerprint(), longer.source().fingerprint());
}

TEST(TokenSourceTest, WhatCanNotWorkIsRefusedWithTheReason) {
  TestFolder folder;
  folder.write("t.bin", "ab");
  const auto problem = [&](const std::string& path, TokenSequences tokens) {
    const auto opening = open_with(options_for({path}, tokens));
    return opening.result.ok() ? "accepted" : opening.result.error().message;
  };
  const std::string file = folder.path() + "/t.bin";
  EXPECT_NE(problem(file, {DType::kU16, 2}).find("4 bytes of one sequence"), std::string::npos);
  EXPECT_NE(problem(file, {DType::kF32, 2}).find("u16 or u32, nothing else"), std::string::npos);
  EXPECT_NE(problem(file, {DType::kU16, 0}).find("out of range"), std::string::npos);
  EXPECT_NE(problem(file + "x", {DType::kU16, 1}).find("t.binx"), std::string::npos);
  EXPECT_NE(problem(folder.path(), {DType::kU16, 1}).find("DIR/*.bin"), std::string::npos)
      << problem(folder.path(), {DType::kU16, 1});
}

TEST(TokenSourceTest, SubsetsWorkAsForOtherSources) {
  TestFolder folder;
  folder.write("t.bin", std::string(40, 'a'));
  SourceOptions options = options_for({folder.path() + "/t.bin"}, {DType::kU16, 4});
  options.subset = std::vector<std::string>{"t.bin#3", "t.bin#0"};
  const auto opening = open_with(options);
  ASSERT_TRUE(opening.result.ok()) << opening.result.error().message;
  EXPECT_EQ(opening.source().locate(0).offset, 24u);
}

// A trillion tokens: the file is a hole, and nothing is kept per sample.
TEST(TokenSourceTest, ABillionSequencesOpenAtOnce) {
  TestFolder folder;
  folder.write("t.bin", "");
  if (::truncate((folder.path() + "/t.bin").c_str(), off_t{2048} * 1'000'000'000) != 0) {
    GTEST_SKIP() << "this file system has no files of 2 TB";
  }
  const auto opening = open_with(options_for({folder.path() + "/t.bin"}, {DType::kU16, 1024}));
  ASSERT_TRUE(opening.result.ok()) << opening.result.error().message;
  EXPECT_EQ(opening.source().size(), 1'000'000'000u);
  EXPECT_EQ(opening.source().locate(999'999'999).offset, 2048ull * 999'999'999);
}

}  // namespace
}  // namespace foreload
