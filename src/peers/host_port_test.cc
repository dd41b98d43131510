#include "peers/host_port.h"

#include <gtest/gtest.h>

#include <random>

#include "plan/test_statistics.h"

namespace foreload {
namespace {

TEST(HostPortTest, NamesNumbersAndBracketsWithAndWithoutPort) {
  EXPECT_EQ(*HostPort::parse("node-1.cluster_a", 7433), (HostPort{"node-1.cluster_a", 7433}));
  EXPECT_EQ(*HostPort::parse("b:1", 7433), (HostPort{"b", 1}));
  EXPECT_EQ(*HostPort::parse("10.0.0.1:65535", 0), (HostPort{"10.0.0.1", 65535}));
  EXPECT_EQ(*HostPort::parse("[fd00::1]", 7433), (HostPort{"fd00::1", 7433}));
  EXPECT_EQ(*HostPort::parse("[::]:0", 7433), (HostPort{"::", 0}));
  EXPECT_EQ((HostPort{"fd00::1", 5}).text(), "[fd00::1]:5");
  EXPECT_EQ((HostPort{"b", 5}).text(), "b:5");
}

TEST(HostPortTest, WhatCanNotBeAnAddressIsRefusedInWords) {
  const std::string too_long(HostPort::kLongestHost + 1, 'x');
  for (const char* text : {"",
                           ":1",
                           "a:",
                           "a:65536",
                           "a:1x",
                           "a:-1",
                           "a: 1",
                           "a b",
                           "a,b",
                           "::1",
                           "fd00::1:7433",
                           "[fd00::1",
                           "[a]:1",
                           "[]:1",
                           "[::1]7433",
                           "[::1]:",
                           "7433",
                           "unix:/x:1",
                           "a/b",
                           "a%b",
                           "[fe80::1%eth0]:1",
                           too_long.c_str()}) {
    const auto parsed = HostPort::parse(text, 7433);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::kInvalid);
    EXPECT_FALSE(parsed.error().message.empty());
  }
  EXPECT_FALSE(HostPort::parse("a", 0)) << "a port has to be written";
  EXPECT_FALSE(HostPort::parse(std::string_view("a\0b:1", 5), 0));
}

TEST(HostPortTest, ANameWithoutPortGetsThatOfTheServer) {
  EXPECT_EQ(served_name("127.0.0.1:0", "127.0.0.1:40123"), "127.0.0.1:40123");
  EXPECT_EQ(served_name("[fd00::1]:0", "[::]:40123"), "[fd00::1]:40123");
  EXPECT_EQ(served_name("node:7433", "0.0.0.0:40123"), "node:7433");
}

TEST(HostPortTest, WhateverIsReadIsWrittenSoThatItReadsTheSame) {
  std::mt19937_64 random(fresh_seed());
  constexpr std::string_view kCharacters = "[]:.0159afx-%/";
  std::size_t good = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string text;
    for (std::uint64_t left = random() % 9; left > 0; --left) text += kCharacters[random() % kCharacters.size()];
    const auto parsed = HostPort::parse(text, 7433);
    if (!parsed) continue;
    ++good;
    const auto again = HostPort::parse(parsed->text(), 0);
    ASSERT_TRUE(again) << text;
    ASSERT_EQ(*again, *parsed) << text;
  }
  EXPECT_GT(good, 100u);
}

}  // namespace
}  // namespace foreload
