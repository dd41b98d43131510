#include "peers/node_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "plan/test_statistics.h"

namespace foreload {
namespace {

using Names = std::vector<std::string>;

Names expanded(std::string_view text, std::size_t most = 100) {
  const auto names = expand_node_list(text, most);
  return names ? *names : Names{"wrong: " + names.error().message};
}

TEST(NodeListTest, RangesAreExpandedWithTheirZeros) {
  EXPECT_EQ(expanded("node[01-03,7],other"), (Names{"node01", "node02", "node03", "node7", "other"}));
  EXPECT_EQ(expanded("gnode[10,20,25,37]"), (Names{"gnode10", "gnode20", "gnode25", "gnode37"}));
  EXPECT_EQ(expanded("a"), (Names{"a"}));
  EXPECT_EQ(expanded("a,b-1.x"), (Names{"a", "b-1.x"}));
  EXPECT_EQ(expanded("n[9-11]-ib"), (Names{"n9-ib", "n10-ib", "n11-ib"}));
  EXPECT_EQ(expanded("n[099-100]"), (Names{"n099", "n100"}));
  EXPECT_EQ(expanded("r[0-1]n[1-2],z"), (Names{"r0n1", "r0n2", "r1n1", "r1n2", "z"}));
}

TEST(NodeListTest, WhatIsNoListIsRefusedInWords) {
  for (const char* text : {"", ",", "a,,b", "n[", "n[1", "n]", "n[]", "n[1-]", "n[-1]", "n[2-1]", "n[a]", "n[1,,2]",
                           "n[1[2]]", "n 1", "n[1-2-3]", "n[99999999999999999999]", "n[0x1]", "n/1", "n[1 ]"}) {
    const auto names = expand_node_list(text, 100);
    ASSERT_FALSE(names) << text;
    EXPECT_EQ(names.error().code, Code::kInvalid);
  }
}

TEST(NodeListTest, MoreThanAllowedIsRefusedBeforeItIsMade) {
  EXPECT_EQ(expanded("n[1-100]").size(), 100u);
  EXPECT_EQ(expanded("n[1-50],m[1-50]").size(), 100u);
  for (const char* text : {"n[1-101]", "n[1-50],m[1-51]", "n[0-999999999999999]", "n[1-11]m[1-11]",
                           "n[1-99]m[1-99]k[1-99]j[1-99]i[1-99]", "n[1-60,1-60]"}) {
    const auto names = expand_node_list(text, 100);
    ASSERT_FALSE(names) << text;
    EXPECT_NE(names.error().message.find("more than 100"), std::string::npos) << names.error().message;
  }
  EXPECT_FALSE(expand_node_list(std::string(10'000, 'n'), 100));
}

TEST(NodeListTest, AnyTextGivesFewShortNamesOrWords) {
  std::mt19937_64 random(fresh_seed());
  constexpr std::string_view kCharacters = "[],-019na";
  std::size_t good = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string text;
    for (std::uint64_t left = random() % 16; left > 0; --left) text += kCharacters[random() % kCharacters.size()];
    const auto names = expand_node_list(text, 50);
    if (!names) continue;
    ++good;
    ASSERT_LE(names->size(), 50u) << text;
    ASSERT_FALSE(names->empty());
    for (const std::string& name : *names) {
      ASSERT_FALSE(name.empty()) << text;
      ASSERT_EQ(name.find_first_of("[],"), std::string::npos) << text;
    }
  }
  EXPECT_GT(good, 100u);
}

TEST(NodeCountsTest, EveryNodeHasItsCount) {
  const auto count = [](std::string_view text, std::size_t node) -> std::int64_t {
    const auto found = count_of_node(text, node);
    return found ? static_cast<std::int64_t>(*found) : -1;
  };
  EXPECT_EQ(count("4", 0), 4);
  EXPECT_EQ(count("4", 9), 4) << "one number is the same everywhere";
  EXPECT_EQ(count("4(x2),3", 0), 4);
  EXPECT_EQ(count("4(x2),3", 1), 4);
  EXPECT_EQ(count("4(x2),3", 2), 3);
  EXPECT_EQ(count("4(x2),3", 3), -1);
  EXPECT_EQ(count("1(x4)", 4), -1);
  EXPECT_EQ(count("8,1(x4000000000),2", 4'000'000'001), 2);
  for (const char* text : {"", ",", "x", "4(", "4(x", "4(x)", "4(x2", "4(xa)", "4(x0)", "(x2)", "4(y2)", "4,,3", "-4",
                           "99999999999", "4 "}) {
    EXPECT_EQ(count(text, 1), -1) << text;
  }
}

}  // namespace
}  // namespace foreload
