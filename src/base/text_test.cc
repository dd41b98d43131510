#include "base/text.h"

#include <gtest/gtest.h>

namespace foreload {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(TrimmedTest, TakesBlanksFromBothEndsOnly) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed("\n a ", " "), "\n a");
  EXPECT_EQ(trimmed(" \t "), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(ParseBytesTest, TakesUnitsAsWritten) {
  EXPECT_EQ(*parse_bytes("8GiB"), 8_GiB);
  EXPECT_EQ(*parse_bytes("100MB"), 100'000'000u);
  EXPECT_EQ(*parse_bytes("64k"), 64'000u);
  EXPECT_EQ(*parse_bytes("64Ki"), 64_KiB);
  EXPECT_EQ(*parse_bytes("1.5 GB"), 1'500'000'000u);
  EXPECT_EQ(*parse_bytes("  2 mib "), 2_MiB);
  EXPECT_EQ(*parse_bytes("3TiB"), 3ull << 40);
  EXPECT_EQ(*parse_bytes("12 B"), 12u);
  EXPECT_EQ(*parse_bytes("0"), 0u);
  EXPECT_EQ(*parse_bytes("18446744073709551615"), ~Bytes{0});
}

TEST(ParseBytesTest, RefusesWhatIsNoSize) {
  for (const char* text : {"", " ", "GiB", "-1", "+1", "1.2.3", ".5G", "1e3", "nan", "0x10", "5 apples", "1 2", "1..",
                           "18446744073709551616", "16777216TiB", "99999999999.5TiB", "1\n"}) {
    const auto bytes = parse_bytes(text);
    ASSERT_FALSE(bytes.ok()) << text;
    EXPECT_EQ(bytes.error().code, Code::kInvalid);
    EXPECT_NE(bytes.error().message.find(text), std::string::npos);
  }
}

TEST(FormatBytesTest, IsShortAndBinary) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1_KiB), "1 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(1_MiB - 1), "1 MiB");
  EXPECT_EQ(format_bytes(1'503'238'554), "1.4 GiB");
  EXPECT_EQ(format_bytes(~Bytes{0}), "16 EiB");
}

TEST(ParseDurationTest, TakesUnits) {
  EXPECT_EQ(*parse_duration("5ms"), milliseconds(5));
  EXPECT_EQ(*parse_duration("2s"), seconds(2));
  EXPECT_EQ(*parse_duration("100us"), microseconds(100));
  EXPECT_EQ(*parse_duration("1.5 ms"), microseconds(1500));
  EXPECT_EQ(*parse_duration("7ns"), Duration(7));
  EXPECT_EQ(*parse_duration("3min"), minutes(3));
  EXPECT_EQ(*parse_duration("2h"), hours(2));
  EXPECT_EQ(*parse_duration("0"), Duration(0));
}

TEST(ParseDurationTest, RefusesWhatIsNoDuration) {
  for (const char* text : {"", "5", "ms", "-5ms", "5 parsecs", "1e9s", "99999999999h", "10000000000s"}) {
    EXPECT_FALSE(parse_duration(text).ok()) << text;
  }
}

TEST(FormatDurationTest, PicksTheUnit) {
  EXPECT_EQ(format_duration(Duration(0)), "0 ns");
  EXPECT_EQ(format_duration(Duration(999)), "999 ns");
  EXPECT_EQ(format_duration(microseconds(1)), "1 us");
  EXPECT_EQ(format_duration(microseconds(1400)), "1.4 ms");
  EXPECT_EQ(format_duration(milliseconds(90'500)), "90.5 s");
  EXPECT_EQ(format_duration(minutes(5)), "5 min");
  EXPECT_EQ(format_duration(hours(30)), "30 h");
  EXPECT_EQ(format_duration(-milliseconds(2)), "-2 ms");
}

TEST(FormatCountTest, GroupsByThousands) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1'281'167), "1,281,167");
  EXPECT_EQ(format_count(~0ull), "18,446,744,073,709,551,615");
}

TEST(CountedTest, OneIsNotMany) {
  EXPECT_EQ(counted(0, "sample"), "0 samples");
  EXPECT_EQ(counted(1, "sample"), "1 sample");
  EXPECT_EQ(counted(1200, "sample"), "1,200 samples");
  EXPECT_EQ(counted(1, "class", "classes"), "1 class");
  EXPECT_EQ(counted(2, "class", "classes"), "2 classes");
}

}  // namespace
}  // namespace foreload
