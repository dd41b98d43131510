#include "source/tar_list.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/test_folder.h"

namespace foreload {
namespace {

using Strings = std::vector<std::string>;

Strings expand(const std::string& text) {
  auto expanded = expand_braces(text);
  return expanded.ok() ? *expanded : Strings{"error: " + expanded.error().message};
}

TEST(TarListTest, BracesAreRangesAndChoices) {
  EXPECT_EQ(expand("x{008..011}.tar"), (Strings{"x008.tar", "x009.tar", "x010.tar", "x011.tar"}));
  EXPECT_EQ(expand("{8..11}"), (Strings{"8", "9", "10", "11"}));
  EXPECT_EQ(expand("{2..0}"), (Strings{"2", "1", "0"}));
  EXPECT_EQ(expand("{00..1}"), (Strings{"00", "01"}));
  EXPECT_EQ(expand("{5..5}"), (Strings{"5"}));
  EXPECT_EQ(expand("{a,b}-{0..1}"), (Strings{"a-0", "a-1", "b-0", "b-1"}));
  EXPECT_EQ(expand("{a,b{1,2}}x"), (Strings{"ax", "b1x", "b2x"}));
  EXPECT_EQ(expand("{,a}x"), (Strings{"x", "ax"}));
}

TEST(TarListTest, OtherBracesArePlainCharacters) {
  for (const char* text : {"plain", "{x}", "{", "}", "{}", "{1..}", "{a..c}", "{..2}", "a{b"}) {
    EXPECT_EQ(expand(text), (Strings{text}));
  }
  EXPECT_EQ(expand("{x}{1..2}"), (Strings{"{x}1", "{x}2"}));
}

TEST(TarListTest, EndlessListsAreRefused) {
  EXPECT_FALSE(expand_braces("{0..9999999}").ok());
  EXPECT_FALSE(expand_braces("{0..18446744073709551615}").ok());
  EXPECT_FALSE(expand_braces("{0..999}{0..999}{0..999}").ok());
}

TEST(TarListTest, GlobsAreSortedByBytesWithinAList) {
  const TestFolder folder;
  for (const char* name : {"b-1.tar", "b-10.tar", "b-2.tar", "B-3.tar", "a/x.tar", "c/x.tar"}) folder.write(name, "");
  auto list = expand_shards(folder.path() + "/{c,a}/*.tar");
  ASSERT_TRUE(list.ok()) << list.error().message;
  EXPECT_EQ(list->folder, folder.path());
  EXPECT_EQ(list->shards, (Strings{"c/x.tar", "a/x.tar"}));
  list = expand_shards(folder.path("[bB]-*.tar"));
  EXPECT_EQ(list->shards, (Strings{"B-3.tar", "b-1.tar", "b-10.tar", "b-2.tar"}));
  EXPECT_EQ(list->pattern, "[bB]-*.tar");
  list = expand_shards(folder.path("z-*.tar"));
  EXPECT_EQ(list.error().code, Code::kNotFound);
  EXPECT_NE(list.error().message.find("z-*.tar"), std::string::npos);
}

TEST(TarListTest, AFileThatExistsIsNoPattern) {
  const TestFolder folder;
  folder.write("data[1].tar", "");
  folder.write("{0..3}.tar", "");
  EXPECT_EQ(expand_shards(folder.path("data[1].tar"))->shards, (Strings{"data[1].tar"}));
  EXPECT_EQ(expand_shards(folder.path("{0..3}.tar"))->shards, (Strings{"{0..3}.tar"}));
}

TEST(TarListTest, ShardsThatLeaveTheFolderAreRefused) {
  const TestFolder folder;
  folder.write("a/x.tar", "");
  folder.write("y.tar", "");
  const auto list = expand_shards(folder.path() + "/a/{x,../y}.tar");
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.error().code, Code::kInvalid);
}

TEST(TarListTest, ASingleFileMayBeALinkToAnywhere) {
  const TestFolder real;
  const TestFolder links;
  real.write("data.tar", "");
  std::filesystem::create_symlink(real.path("data.tar"), links.path("link.tar"));
  const auto list = expand_shards(links.path("link.tar"));
  EXPECT_EQ(list->folder, real.path());
  EXPECT_EQ(list->shards, (Strings{"data.tar"}));
  EXPECT_EQ(expand_shards(links.path("missing.tar")).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace foreload
